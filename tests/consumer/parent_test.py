"""Configures a project that adds Troupe's source tree: parent_test.py FOLDER CMAKE GENERATOR."""
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ELSEWHERE = "/opt/elsewhere/include"  # Nothing is installed.


def main():
    build, cmake, generator = sys.argv[1:]
    shutil.rmtree(build, ignore_errors=True)
    subprocess.run([cmake, "-S", HERE / "parent", "-B", build, "-G", generator,
                    f"-DCMAKE_INSTALL_INCLUDEDIR={ELSEWHERE}"], check=True)
    exports = list(pathlib.Path(build).glob("troupe/CMakeFiles/Export/**/TroupeTargets.cmake"))
    assert len(exports) == 1, exports
    folders = re.findall(r"INTERFACE_INCLUDE_DIRECTORIES \"(.*)\"", exports[0].read_text())
    assert folders, "TroupeTargets.cmake names no folder of headers"
    for folder in folders:
        assert f"{ELSEWHERE}/troupe" in folder.split(";"), folder


if __name__ == "__main__":
    main()
