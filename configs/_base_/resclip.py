"""ResCLIP on each benchmark, for ``model.host.plugin``. The original has one set of options for all hosts."""

resclip = dict(
    voc21=dict(
        type='ResCLIP',
        rcs=dict(scale=2.0, weight=0.3),
        sfr=dict(scale=2.2, weight=0.7, temp_thd=0.5),
    ),
    voc20=dict(
        type='ResCLIP',
        rcs=dict(scale=2.0, weight=0.6),
        sfr=dict(scale=2.1, weight=0.6, temp_thd=0.1),
    ),
    context60=dict(
        type='ResCLIP',
        rcs=dict(scale=2.0, weight=0.3),
        sfr=dict(scale=1.8, weight=0.7, temp_thd=0.3),
    ),
    context59=dict(
        type='ResCLIP',
        rcs=dict(scale=2.0, weight=0.4),
        sfr=dict(scale=1.8, weight=0.7, temp_thd=0.25),
    ),
    coco_object=dict(
        type='ResCLIP',
        rcs=dict(scale=2.0, weight=0.4),
        sfr=dict(scale=1.8, weight=0.7, temp_thd=0.11),
    ),
    coco_stuff164k=dict(
        type='ResCLIP',
        rcs=dict(scale=2.0, weight=0.4),
        sfr=dict(scale=1.8, weight=0.7, temp_thd=0.11),
    ),
    cityscapes=dict(
        type='ResCLIP',
        rcs=dict(scale=2.0, weight=0.2),
        sfr=dict(scale=2.1, weight=0.6, temp_thd=0.1),
    ),
    ade20k=dict(
        type='ResCLIP',
        rcs=dict(scale=2.0, weight=0.3),
        sfr=dict(scale=2.1, weight=0.7, temp_thd=0.25),
    ),
    # The tiny CLIP has four blocks, and patches of half the size.
    miniature=dict(
        type='ResCLIP',
        rcs=dict(scale=2.0, weight=0.3, blocks=(1, 2)),
        sfr=dict(scale=2.1, weight=0.7, temp_thd=0.25, gaussian_std=3, pamr_dilations=(4, 8)),
    ),
)
