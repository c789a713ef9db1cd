"""The wheel: what is in it and what is not (`make wheel` also installs and uses it)."""

import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("helios", "indexing", "training", "serving")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    pytest.importorskip("hatchling", reason="hatchling is not installed (helios-retrieval[dev])")
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (path,) = out.glob("helios_retrieval-*-py3-none-any.whl")
    return zipfile.ZipFile(path)


@pytest.mark.slow
def test_the_wheel_holds_what_is_in_the_packages_and_nothing_else(wheel: zipfile.ZipFile):
    command = ["git", "-c", "core.quotepath=off", "ls-files", "--cached", "--others", "--exclude-standard", *PACKAGES]
    tracked = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert names == set(tracked.stdout.splitlines())
    assert {name.partition("/")[0] for name in names} == set(PACKAGES)
    assert "training/configs/ranker.yaml" in names
    assert "helios/corpus/sample_files/bridges/bridges.csv" in names


def test_the_plain_installation_has_the_fast_encoder_where_there_is_one(wheel: zipfile.ZipFile):
    from packaging.requirements import Requirement

    (path,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(wheel.read(path).decode())
    wanted = [Requirement(text) for text in metadata.get_all("Requires-Dist") or ()]

    def plain(system: str, machine: str) -> set[str]:
        platform = {"platform_system": system, "platform_machine": machine, "extra": ""}
        return {one.name for one in wanted if one.marker is None or one.marker.evaluate(platform)}

    for system, machine in (("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "arm64")):
        assert {"openvino", "torch"} & plain(system, machine) == {"openvino"}
    for system, machine in (("Darwin", "x86_64"), ("Linux", "ppc64le"), ("Windows", "AMD64")):
        assert {"openvino", "torch"} & plain(system, machine) == {"torch"}
    assert "openai" not in plain("Linux", "x86_64")
    assert "all" in (metadata.get_all("Provides-Extra") or ())
