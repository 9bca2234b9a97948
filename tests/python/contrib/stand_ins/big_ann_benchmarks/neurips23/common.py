"""What runs the algorithms of a track."""

from benchmark.algorithms.base_runner import BaseRunner

RUNNERS = {"filter": BaseRunner, "ood": BaseRunner}
