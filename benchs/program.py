"""How a script of benchs/ ends: what its user can mend is a line, not a trace."""

import json
import pathlib
import sys

__all__ = ["end_with"]


def end_with(main, *arguments):
    """Ends the process with the status of main(). A file or a package that is
    missing, or a file that is no result, is a line on stderr and status 1;
    Ctrl-C is 130."""
    name = pathlib.Path(sys.argv[0]).name
    try:
        sys.exit(main(*arguments))
    except ModuleNotFoundError as error:
        sys.exit(f"{name}: needs the Python package {error.name}")
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        sys.exit(f"{name}: no file of results: {error}")
    except OSError as error:
        if error.filename is None:
            raise
        sys.exit(f"{name}: {error.filename}: {error.strerror}")
    except KeyboardInterrupt:
        print(f"{name}: stopped", file=sys.stderr)
        sys.exit(130)
