"""How ann-benchmarks reads a config.yml: lists of arguments, for every way to
take one of each."""

import importlib
import itertools
from pathlib import Path
from types import SimpleNamespace

import yaml


def get_definitions(
    dimension, point_type="float", distance_metric="euclidean", count=10,
    base_dir="ann_benchmarks/algorithms",
):
    values = {
        "@count": count, "@metric": distance_metric, "@dimension": dimension
    }
    found = []
    for path in Path(base_dir).glob("*/config.yml"):
        metrics = yaml.safe_load(path.read_text()).get(point_type, {})
        entries = metrics.get("any", []) + metrics.get(distance_metric, [])
        for entry in entries:
            for group in entry["run_groups"].values():
                lists = [
                    x if isinstance(x, list) else [x] for x in group["args"]
                ]
                for chosen in itertools.product(*lists):
                    arguments = [*entry.get("base_args", []), *chosen]
                    found.append(SimpleNamespace(
                        algorithm=entry["name"],
                        constructor=entry["constructor"],
                        module=entry["module"],
                        docker_tag=entry["docker_tag"],
                        arguments=[values.get(x, x) for x in arguments],
                        query_argument_groups=[],
                        disabled=entry.get("disabled", False),
                    ))
    return found


def instantiate_algorithm(definition):
    module = importlib.import_module(definition.module + ".module")
    return getattr(module, definition.constructor)(*definition.arguments)
