"""MLMP's protocol: image and label at 224 x 224, whatever their shape, and scored there."""

test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='Resize', scale=(224, 224), keep_ratio=False),
    dict(type='ScoreAtThisSize'),
    dict(type='PackSegInputs'),
]
