from __future__ import annotations

import errno
import json

import numpy as np
import pytest
import torch
from mmengine.evaluator import Evaluator
from mmseg.evaluation import IoUMetric
from mmseg.registry import METRICS
from PIL import Image

from tests.evaluation.samples import CLASSES, random_sample, sample
from tpa_mmseg.errors import TPAError
from tpa_mmseg.evaluation import HostTPAMetric, summary


def evaluate(metric, samples, classes=CLASSES):
    evaluator = Evaluator(metric)
    evaluator.dataset_meta = {'classes': classes}
    evaluator.process(samples)
    return evaluator.evaluate(len(samples))


def iou_metric_scores(samples, field, **options):
    """What mmseg's own metric makes of one of the two predictions, its table of classes included."""
    copies = [sample(s.get(field).data[0], s.gt_sem_seg.data[0]) for s in samples]
    metric = IoUMetric(**options)
    per_class = {}
    original = metric.total_area_to_metrics

    def keep(*args):
        per_class.update(original(*args))
        return dict(per_class)

    metric.total_area_to_metrics = keep
    scores = {name: round(float(value), 2) for name, value in evaluate(metric, copies).items()}
    return scores, np.round(per_class['IoU'] * 100, 2)


@pytest.mark.parametrize('nan_to_num', [None, 0])
def test_scores_equal_mmseg_iou_metric_for_host_and_tpa(nan_to_num):
    samples = [random_sample(seed) for seed in range(7)]
    metric = HostTPAMetric(nan_to_num=nan_to_num)
    scores = evaluate(metric, samples)
    for prefix, field, column in (('', 'pred_sem_seg', 'tpa_iou'), ('host_', 'host_sem_seg', 'host_iou')):
        expected, expected_iou = iou_metric_scores(samples, field, nan_to_num=nan_to_num)
        assert {name: scores[prefix + name] for name in expected} == expected
        ours = [np.nan if entry[column] is None else entry[column] for entry in metric.report['per_class']]
        np.testing.assert_allclose(ours, expected_iou, atol=1e-5)


def test_gain_is_the_difference_of_the_printed_numbers():
    metric = HostTPAMetric()
    scores = evaluate(metric, [random_sample(seed) for seed in range(5)])
    report = metric.report
    for name in ('aAcc', 'mIoU', 'mAcc'):
        assert report['gain'][name] == round(report['tpa'][name] - report['host'][name], 2) == scores[f'gain_{name}']
    for entry in report['per_class'][:4]:
        assert entry['gain'] == round(entry['tpa_iou'] - entry['host_iou'], 2)
    assert scores['gain_mIoU'] > 0


def test_absent_class_has_no_iou_and_report_is_valid_json():
    metric = HostTPAMetric()
    evaluate(metric, [random_sample(seed) for seed in range(3)])
    text = json.dumps(metric.report, allow_nan=False)
    absent = json.loads(text)['per_class'][-1]
    assert absent == {'name': 'never seen', 'host_iou': None, 'tpa_iou': None, 'gain': None, 'support': 0}


def test_image_without_any_labeled_pixel_gives_null_scores():
    nothing = torch.full((3, 3), 255)
    metric = HostTPAMetric()
    with pytest.warns(RuntimeWarning, match='Mean of empty slice'):
        evaluate(metric, [sample(nothing * 0, nothing, nothing * 0)])
    assert metric.report['host'] == {'aAcc': None, 'mIoU': None, 'mAcc': None}
    assert metric.report['gain'] == {'aAcc': None, 'mIoU': None, 'mAcc': None}


def test_support_counts_the_labeled_pixels_of_the_truth():
    samples = [random_sample(seed) for seed in range(4)]
    metric = HostTPAMetric()
    evaluate(metric, samples)
    truth = torch.cat([s.gt_sem_seg.data.flatten() for s in samples])
    assert [entry['support'] for entry in metric.report['per_class']] == [int((truth == c).sum()) for c in range(5)]


def test_without_host_labels_the_prediction_is_the_host():
    metric = HostTPAMetric()
    scores = evaluate(metric, [random_sample(seed, with_host=False) for seed in range(3)])
    assert set(scores) == {'aAcc', 'mIoU', 'mAcc'}
    assert set(metric.report) == {'host', 'per_class'}
    assert set(metric.report['per_class'][0]) == {'name', 'host_iou', 'support'}
    assert metric.report['host'] == scores


def test_same_labels_gain_nothing():
    labels = torch.randint(4, (6, 6))
    metric = HostTPAMetric()
    evaluate(metric, [sample(labels, torch.randint(4, (6, 6)), labels.clone())])
    assert set(metric.report['gain'].values()) == {0.0}


def test_image_of_one_row_is_scored():
    labels = torch.tensor([[0, 1, 1]])
    assert evaluate(HostTPAMetric(), [sample(labels, labels, labels)])['aAcc'] == 100


def test_ignore_index_is_an_option():
    truth = torch.tensor([[0, 1, 3]])
    metric = HostTPAMetric(ignore_index=3)
    assert evaluate(metric, [sample(torch.tensor([[0, 1, 1]]), truth)])['aAcc'] == 100


def test_prefix_is_put_before_the_names():
    scores = evaluate(HostTPAMetric(prefix='voc'), [random_sample(0)])
    assert 'voc/mIoU' in scores and 'voc/gain_mIoU' in scores


def test_metric_is_built_by_its_name():
    assert isinstance(METRICS.build({'type': 'HostTPAMetric'}), HostTPAMetric)


def test_missing_truth_is_one_sentence_that_names_the_image():
    with pytest.raises(TPAError, match=r'a/b\.jpg has no ground truth .* format_only=True'):
        evaluate(HostTPAMetric(), [sample(torch.zeros(2, 2, dtype=torch.long), img_path='a/b.jpg')])


def test_truth_of_another_size_is_one_sentence_that_names_the_sizes():
    with pytest.raises(TPAError, match=r'x\.jpg is 3 x 2 pixels but its prediction 2 x 2'):
        evaluate(HostTPAMetric(), [sample(torch.zeros(2, 2).long(), torch.zeros(3, 2).long(), img_path='x.jpg')])


@pytest.mark.parametrize('label', [5, 254, -1])
def test_truth_with_a_label_beyond_the_classes_is_refused(label):
    truth = torch.tensor([[0, label]])
    with pytest.raises(TPAError, match=rf'x\.jpg has label {label}, but the dataset has 5 classes'):
        evaluate(HostTPAMetric(), [sample(torch.zeros(1, 2).long(), truth, img_path='x.jpg')])


@pytest.mark.parametrize('reduce_zero_label', [False, True])
@pytest.mark.parametrize(('num_classes', 'dtype'), [(4, np.uint8), (255, np.uint8), (300, np.uint16)])
def test_label_maps_are_written_for_test_servers(tmp_path, num_classes, dtype, reduce_zero_label):
    labels = torch.randint(num_classes, (5, 7))
    labels[0, 0] = num_classes - 1
    metric = HostTPAMetric(output_dir=str(tmp_path / 'out'), format_only=True)
    classes = [str(c) for c in range(num_classes)]
    assert evaluate(metric, [sample(labels, img_path='a/b.c.jpg', reduce_zero_label=reduce_zero_label)], classes) == {}
    assert metric.report is None
    written = np.asarray(Image.open(tmp_path / 'out' / 'b.c.png'))
    assert written.dtype == dtype
    np.testing.assert_array_equal(written, labels.numpy() + reduce_zero_label)


def test_label_maps_equal_those_of_iou_metric(tmp_path):
    labels = torch.randint(4, (5, 7))
    for name, metric in (('theirs', IoUMetric), ('ours', HostTPAMetric)):
        data = sample(labels, img_path='b.jpg', reduce_zero_label=True)
        evaluate(metric(output_dir=str(tmp_path / name), format_only=True), [data])
    np.testing.assert_array_equal(*(np.asarray(Image.open(tmp_path / name / 'b.png')) for name in ('theirs', 'ours')))


def test_label_maps_and_scores_come_together(tmp_path):
    metric = HostTPAMetric(output_dir=str(tmp_path))
    assert 'mIoU' in evaluate(metric, [random_sample(0), random_sample(1)])
    assert sorted(path.name for path in tmp_path.iterdir()) == ['image0.png', 'image1.png']


def test_interrupted_label_map_leaves_no_file(tmp_path, monkeypatch):
    def fill_the_disk(self, file, **options):
        file.write(b'half a picture')
        raise OSError(errno.ENOSPC, 'No space left on device')

    monkeypatch.setattr(Image.Image, 'save', fill_the_disk)
    with pytest.raises(TPAError, match='space'):
        evaluate(HostTPAMetric(output_dir=str(tmp_path)), [random_sample(0)])
    assert list(tmp_path.iterdir()) == []


def test_label_maps_that_share_a_name_are_reported(tmp_path, monkeypatch):
    warnings = []
    monkeypatch.setattr('tpa_mmseg.evaluation.metric.print_log', lambda text, **_: warnings.append(text))
    labels = torch.zeros(2, 2).long()
    samples = [sample(labels, img_path=path) for path in ('a/x.jpg', 'a/y.jpg', 'b/x.jpg')]
    evaluate(HostTPAMetric(output_dir=str(tmp_path), format_only=True), samples)
    assert any('a/x.jpg and b/x.jpg share the label map x.png' in text for text in warnings)


def test_format_only_without_a_place_is_refused():
    with pytest.raises(TPAError, match='output_dir'):
        HostTPAMetric(format_only=True)


def test_summary_shows_both_columns_the_gain_and_the_anchors():
    metric = HostTPAMetric()
    evaluate(metric, [random_sample(seed) for seed in range(3)])
    metric.report['per_class'][0]['anchors'] = 12345
    text = summary(metric.report)
    entry = metric.report['per_class'][0]
    row = next(line for line in text.splitlines() if line.startswith('| wall'))
    cells = [cell.strip() for cell in row.strip('|').split('|')]
    scores = [f'{entry["host_iou"]:.2f}', f'{entry["tpa_iou"]:.2f}', f'{entry["gain"]:+.2f}']
    assert cells == ['wall', *scores, str(entry['support']), '12,345']
    assert f'{metric.report["gain"]["mIoU"]:+.2f}' in text.splitlines()[-2]


def test_summary_without_tpa_has_one_column_of_scores():
    metric = HostTPAMetric()
    evaluate(metric, [random_sample(0, with_host=False)])
    text = summary(metric.report)
    assert '| Class ' in text and 'TPA' not in text and 'Gain' not in text and 'Anchors' not in text


def test_second_evaluation_does_not_keep_the_first():
    metric = HostTPAMetric()
    evaluate(metric, [random_sample(seed) for seed in range(3)])
    first = metric.report
    evaluate(metric, [random_sample(seed) for seed in range(3)])
    assert metric.report == first
