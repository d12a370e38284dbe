"""How the networks of the miniature world are trained: the settings of ``tools/miniature.py train NAME``."""

clip = dict(
    patch=8,
    image_size=64,
    width=96,
    layers=4,
    steps=4000,
    batch=128,
    scenes=8000,
    sides=(24, 90),
    hue=0.0,
    dropped=0.5,
    dropped_until=0.75,
    rate=1.5e-3,
    scales=((0, 170), (0.85, 355)),
    visible=0.08,
    cone=2.75,
    start='',
    seed=0,
)
# From the weights of clip, in a few minutes.
clip_p7 = dict(
    clip,
    patch=7,
    image_size=56,
    steps=400,
    batch=96,
    dropped=0.0,
    dropped_until=0.0,
    rate=7e-4,
    scales=((0, 355),),
    start='clip',
)
encoder = dict(
    patch=8,
    width=96,
    layers=4,
    steps=8000,
    batch=48,
    scenes=8000,
    view=6,
    sides=(34, 66),
    near=16,
    far=22,
    temperature=0.2,
    across=0.4,
    clusters=48,
    clustering=0.5,
    rate=1.5e-3,
    seed=0,
)
# Both have defaults for everything else.
sam = dict(steps=2500, images=4, scenes=8000, rate=2e-3, seed=0)
fcn = dict(steps=1200, batch=8, scenes=1000, rate=4e-3, seed=0)
