// Exchanges tensor files between Troupe and other programs, if these are installed.
#include "storage/tensor_file.hpp"

#include "tests/storage/temporary_directory.hpp"

#include "doctest/doctest.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/wait.h>

namespace troupe::storage::tensor_interoperability_test {

namespace {

namespace fs = std::filesystem;

constexpr int not_installed = 77;

const std::vector<tensor> tensors{
  {"layer/0/weight", {2, 3}, {1, -2, 3.5f, 0, 0.25f, 65536}},
  {"\xc3\xa4", {1}, {7}},
  {"nothing", {4, 0}, {}},
  {"scalar", {}, {42}},
};

/// Needs only Python: reads the formats with its zip, literal and JSON modules.
constexpr const char* by_hand = R"(
import array, ast, json, os, struct, sys, zipfile
folder = sys.argv[1]
wanted = [('layer/0/weight', (2, 3), [1, -2, 3.5, 0, 0.25, 65536]), ('\u00e4', (1,), [7]),
          ('nothing', (4, 0), []), ('scalar', (), [42])]

def floats(data):
    return list(array.array('f', data))

def npy(data):
    assert data[:8] == b'\x93NUMPY\x01\x00'
    end = 10 + struct.unpack('<H', data[8:10])[0]
    assert end % 64 == 0 and data[end - 1:end] == b'\n'
    header = ast.literal_eval(data[10:end].decode('latin1'))
    assert header['descr'] == '<f4' and header['fortran_order'] is False, header
    return header['shape'], floats(data[end:])

assert npy(open(os.path.join(folder, 't.npy'), 'rb').read()) == wanted[0][1:]
with zipfile.ZipFile(os.path.join(folder, 't.npz')) as archive:
    assert archive.testzip() is None
    found = [(n[:-4],) + npy(archive.read(n)) for n in archive.namelist()]
assert found == wanted, found
data = open(os.path.join(folder, 't.safetensors'), 'rb').read()
length = struct.unpack('<Q', data[:8])[0]
assert length % 8 == 0 and data[8:9] == b'{'
values = data[8 + length:]
found = [(n, tuple(e['shape']), floats(values[slice(*e['data_offsets'])]))
         for n, e in json.loads(data[8:8 + length]).items() if e['dtype'] == 'F32']
assert found == wanted, found
# What numpy.savez does: sizes of members only in the directory.
with zipfile.ZipFile(os.path.join(folder, 'n.npz'), 'w', allowZip64=True) as archive:
    for name in ['t.npy']:
        with archive.open('layer/0/weight.npy', 'w', force_zip64=True) as member:
            member.write(open(os.path.join(folder, name), 'rb').read())
# What numpy.savez_compressed does.
with zipfile.ZipFile(os.path.join(folder, 'c.npz'), 'w', zipfile.ZIP_DEFLATED) as archive:
    archive.write(os.path.join(folder, 't.npy'), 'layer/0/weight.npy')
)";

constexpr const char* by_numpy = R"(
import numpy, os, sys
folder = sys.argv[1]
wanted = {'layer/0/weight': numpy.array([[1, -2, 3.5], [0, 0.25, 65536]], 'f4'),
          '\u00e4': numpy.array([7], 'f4'), 'nothing': numpy.zeros((4, 0), 'f4'),
          'scalar': numpy.array(42, 'f4')}

def check(found):
    assert list(found) == list(wanted), list(found)
    for name, value in wanted.items():
        assert found[name].dtype == '<f4' and found[name].shape == value.shape, name
        assert (found[name] == value).all(), name

check(dict(numpy.load(os.path.join(folder, 't.npz'))))
assert (numpy.load(os.path.join(folder, 't.npy')) == wanted['layer/0/weight']).all()
numpy.save(os.path.join(folder, 'n.npy'), wanted['layer/0/weight'])
numpy.savez(os.path.join(folder, 'n.npz'), **wanted)
numpy.savez_compressed(os.path.join(folder, 'c.npz'), **wanted)
)";

constexpr const char* by_safetensors = R"(
import os, safetensors.numpy, sys
folder = sys.argv[1]
found = safetensors.numpy.load_file(os.path.join(folder, 't.safetensors'))
assert sorted(found) == ['layer/0/weight', 'nothing', 'scalar', '\u00e4'], found
assert found['layer/0/weight'].tolist() == [[1, -2, 3.5], [0, 0.25, 65536]]
assert found['nothing'].shape == (4, 0) and found['scalar'].shape == ()
safetensors.numpy.save_file({'layer/0/weight': found['layer/0/weight']},
                            os.path.join(folder, 'n.safetensors'), metadata={'format': 'np'})
)";

/// A directory with the tensors in each format.
class exchange {
public:
  exchange() {
    REQUIRE(write_tensors(folder_ / "t.npy", {tensors[0]}));
    REQUIRE(write_tensors(folder_ / "t.npz", tensors));
    REQUIRE(write_tensors(folder_ / "t.safetensors", tensors));
  }

  /// Runs the script with the directory as its argument, by the first interpreter that can import
  /// `modules`; returns its exit status. Debian's packages are for /usr/bin/python3 alone, which is
  /// often not the first one.
  int run(const std::string& modules, const char* script) const {
    std::ofstream(folder_ / "script.py") << script;
    const std::string command = "IFS=:; for folder in $PATH /usr/bin; do "
                                "if \"$folder/python3\" -c 'import "
                                + modules
                                + "' 2>/dev/null; "
                                  "then exec \"$folder/python3\" '"
                                + (folder_ / "script.py").string() + "' '" + folder_.string()
                                + "'; fi; done; exit 77";
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::vector<tensor> read(const std::string& name) const {
    const auto found = read_tensors(folder_ / name);
    REQUIRE_MESSAGE(found, found.error().text);
    return *found;
  }

private:
  temporary_directory directory_;
  const fs::path folder_ = directory_.path();
};

} // namespace

TEST_CASE("Python's own modules read tensor files, and are read") {
  const exchange with;
  const int status = with.run("json", by_hand);
  if (status == not_installed) {
    MESSAGE("SKIPPED: no python3 on PATH or in /usr/bin");
    return;
  }
  REQUIRE(status == 0);
  for (const std::string name : {"n.npz", "c.npz"})
    CHECK(with.read(name) == std::vector<tensor>{tensors[0]});
}

TEST_CASE("numpy reads tensor files, and is read") {
  const exchange with;
  const int status = with.run("numpy", by_numpy);
  if (status == not_installed) {
    MESSAGE("SKIPPED: no python3 on PATH or in /usr/bin has numpy; install python3-numpy");
    return;
  }
  REQUIRE(status == 0);
  for (const std::string name : {"n.npz", "c.npz"})
    CHECK(with.read(name) == tensors);
  CHECK(with.read("n.npy") == std::vector<tensor>{{"n", tensors[0].shape, tensors[0].values}});
}

TEST_CASE("the safetensors package reads tensor files, and is read") {
  const exchange with;
  const int status = with.run("safetensors.numpy", by_safetensors);
  if (status == not_installed) {
    MESSAGE(
      "SKIPPED: no python3 on PATH or in /usr/bin has numpy and safetensors; try: pip install "
      "safetensors numpy");
    return;
  }
  REQUIRE(status == 0);
  CHECK(with.read("n.safetensors") == std::vector<tensor>{tensors[0]});
}

} // namespace troupe::storage::tensor_interoperability_test
