"""Progress bars of what takes long, by tqdm where it is installed."""

import sys

__all__ = ["bar"]


class _NoBar:
    def update(self, count):
        pass

    def close(self):
        pass


def bar(name, total, unit, progress=True):
    """A bar of tqdm, or something that takes its calls and shows nothing:
    without `progress`, or without tqdm, which is said then."""
    if progress:
        try:
            from tqdm import tqdm
        except ImportError:
            print(f"{name}: no progress bar without tqdm", file=sys.stderr)
        else:
            return tqdm(total=total, unit=unit, desc=name, leave=False)
    return _NoBar()
