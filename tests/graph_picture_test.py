#!/usr/bin/env python3
"""Checks that the picture of a graph in the guide shows the graph that its program prints.

usage: graph_picture_test.py PROGRAMS
       graph_picture_test.py --self-test
"""
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

PICTURE = pathlib.Path(__file__).parent.parent / "docs/guide/private_sgd.svg"
COMMAND = ("private_sgd", "--replicas", "2", "--compress", "fp16", "--dot")


def parts_of_text(text):
    """Returns the labels and the edges of a graph in the language of graphviz."""
    labels = [line for label in re.findall(r'label="(.*?)"', text) for line in label.split("\\n")]
    return sorted(labels), sorted(re.findall(r"(\w+ -> \w+)", text))


def parts_of_picture(text):
    name = "{http://www.w3.org/2000/svg}"
    root = xml.fromstring(text)
    titles = [title.text for title in root.iter(f"{name}title")]
    edges = [title.replace("->", " -> ") for title in titles if "->" in title]
    return sorted(label.text for label in root.iter(f"{name}text")), sorted(edges)


def main():
    picture = parts_of_picture(PICTURE.read_text())
    if sys.argv[1:] == ["--self-test"]:
        other = parts_of_picture(PICTURE.read_text().replace("codec(fp16)", "codec(int8)"))
        return 0 if other != picture and len(picture[1]) == 4 else 1
    program = pathlib.Path(sys.argv[1]) / COMMAND[0]
    told = subprocess.run([program, *COMMAND[1:]], capture_output=True, text=True, check=True)
    if parts_of_text(told.stdout) == picture:
        return 0
    print(f"{PICTURE} is not the graph of: {' '.join(COMMAND)}\n"
          f"make it again: {' '.join(COMMAND)} | dot -Tsvg > {PICTURE}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
