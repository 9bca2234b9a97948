"""How big-ann-benchmarks reads the definitions of algorithms."""

import importlib
import itertools
from pathlib import Path
from types import SimpleNamespace

import yaml


def get_definitions(
    definition_file, dimension, dataset, distance_metric="euclidean", count=10
):
    values = {
        "@count": count, "@metric": distance_metric, "@dimension": dimension
    }
    found = []
    data = yaml.safe_load(Path(definition_file).read_text())
    entries = {**data.get("any", {}), **data.get(dataset, {})}
    for name, entry in entries.items():
        for group in entry["run-groups"].values():
            lists = [x if isinstance(x, list) else [x] for x in group["args"]]
            for chosen in itertools.product(*lists):
                arguments = [*entry.get("base-args", []), *chosen]
                found.append(SimpleNamespace(
                    algorithm=name,
                    constructor=entry["constructor"],
                    module=entry["module"],
                    docker_tag=entry["docker-tag"],
                    arguments=[values.get(x, x) for x in arguments],
                    query_argument_groups=[],
                ))
    return found


def instantiate_algorithm(definition):
    module = importlib.import_module(definition.module)
    return getattr(module, definition.constructor)(*definition.arguments)
