"""The Dockerfiles of the adapters, as far as they can be held to something
without Docker: what they copy is there, and where the source comes from."""

import os
import shlex
import shutil
import subprocess
import tarfile

import pytest
from checkouts import ROOT, checkout, commands, instructions, kinds

# By benchmark: where the Dockerfile and the archive lie in a checkout.
PLACES = {
    "ann_benchmarks": "ann_benchmarks/algorithms/faiss_bits/Dockerfile",
    "big_ann_benchmarks": "install/Dockerfile.faiss_bits",
}


@pytest.fixture(
    scope="module",
    params=[(name, kind) for name in PLACES for kind in kinds(name)],
    ids=lambda param: "-".join(param),
)
def place(request, tmp_path_factory):
    """(name of the benchmark, folder of a checkout, Dockerfile)."""
    name, kind = request.param
    folder = tmp_path_factory.mktemp(name) / "checkout"
    with checkout(name, kind, folder):
        yield name, folder, folder / PLACES[name]


def test_what_is_copied_is_there(place):
    """Of several sources of one COPY some may be missing, if they have a star,
    but not all: Docker wants one."""
    _, folder, dockerfile = place
    copies = [rest for word, rest in instructions(dockerfile) if word == "COPY"]
    assert len(copies) == 2
    for rest in copies:
        *sources, _ = rest.split()
        found = [list(folder.glob(source.rstrip("/"))) for source in sources]
        assert any(found), rest
        for source, paths in zip(sources, found):
            assert paths or "*" in source, source


def test_the_program_is_the_benchmarks(place):
    _, folder, dockerfile = place
    found = dict(instructions(dockerfile))
    assert found["WORKDIR"] == "/home/app"  # where the runner mounts folders
    assert found["ENTRYPOINT"] == '["python", "-u", "run_algorithm.py"]'
    assert (folder / "run_algorithm.py").exists()


def test_both_are_made_alike():
    """But for what is copied and what the benchmarks themselves import."""
    found = []
    for name, path in PLACES.items():
        home = ROOT / "contrib" / name
        if name == "ann_benchmarks":
            path = path.partition("algorithms/")[2]
        found.append([
            (word, None if "apt-get" in rest or word == "COPY" else rest)
            for word, rest in instructions(home / path)
        ])
    assert found[0] == found[1]


def get_source(place, folder, **variables):
    """Runs the step that gets the source, in `folder`."""
    steps = [
        rest
        for word, rest in instructions(place[2])
        if word == "RUN" and "git clone" in rest
    ]
    assert len(steps) == 1
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("FAISS_BITS_", "GIT_"))
    }
    return subprocess.run(
        ["sh", "-c", steps[0]],
        cwd=folder,
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def repository(tmp_path):
    """A repository with one file, and two branches."""
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    home = tmp_path / "repository"
    home.mkdir()
    (home / "pyproject.toml").write_text("main")

    def git(*words):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
            cwd=home, check=True, capture_output=True, timeout=60,
        )

    git("init", "-b", "main")
    git("add", ".")
    git("commit", "-m", "one")
    git("switch", "-c", "other")
    (home / "pyproject.toml").write_text("other")
    git("commit", "-a", "-m", "two")
    git("switch", "main")
    return home


def test_source_from_nowhere(place, tmp_path):
    done = get_source(place, tmp_path)
    assert done.returncode != 0
    assert "FAISS_BITS_URL" in done.stderr and "is not set" in done.stderr


@pytest.mark.parametrize("branch", ["", "other"])
def test_source_from_a_repository(place, tmp_path, repository, branch):
    variables = {"FAISS_BITS_URL": f"file://{repository}"}
    if branch:
        variables["FAISS_BITS_BRANCH"] = branch
    work = tmp_path / "work"
    work.mkdir()
    done = get_source(place, work, **variables)
    assert done.returncode == 0, done.stderr
    text = (work / "source" / "pyproject.toml").read_text()
    assert text == (branch or "main")


def test_source_from_an_archive(place, tmp_path, repository):
    """Made by the README's command, and copied to where it is looked for."""
    name, checkout_folder, dockerfile = place
    archives = commands(name, "git archive")
    assert len(archives) == 1
    subprocess.run(
        ["sh", "-ec", archives[0]],
        cwd=repository,
        env={**os.environ, "CHECKOUT": str(checkout_folder)},
        check=True,
        timeout=60,
    )
    archive = dockerfile.parent / "faiss_bits.tar"
    with tarfile.open(archive) as content:
        assert content.getnames() == ["pyproject.toml"]
    try:
        copied = [
            path.name
            for word, rest in instructions(dockerfile)
            if word == "COPY"
            for source in rest.split()[:-1]
            for path in checkout_folder.glob(
                source + "*" if source.endswith("/") else source
            )
        ]
        assert archive.name in copied
        work = tmp_path / "work"
        work.mkdir()
        archive.rename(work / archive.name)
        done = get_source(place, work)
    finally:
        archive.unlink(missing_ok=True)
    assert done.returncode == 0, done.stderr
    assert (work / "source" / "pyproject.toml").read_text() == "main"


@pytest.mark.parametrize("name", PLACES)
def test_commands_of_the_readme(name):
    """Options and names of the runs are those of the definitions."""
    runs = [
        shlex.split(line, comments=True)
        for line in commands(name, "python run.py")
    ]
    algorithms = {r[r.index("--algorithm") + 1] for r in runs}
    assert algorithms == {"faiss-bits", "faiss-bits-gpu"}
    for run in runs:
        if "--definitions" in run:
            path = run[run.index("--definitions") + 1]
            assert (ROOT / "contrib" / name / path).exists()
        if "--neurips23track" in run:
            track = run[run.index("--neurips23track") + 1]
            home = ROOT / "contrib" / name / "neurips23" / track / "faiss_bits"
            assert (home / "config.yaml").exists()
