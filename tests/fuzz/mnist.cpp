// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The two files of images and labels that examples/train_mnist reads, gzipped or not: they are refused by name, or there is a
// label for each image, and all numbers are in their ranges. The first two bytes of the input say how long the first file is.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "../../examples/train_mnist/data.hpp"
#include "input.hpp"

namespace {

/// An empty folder, which goes with the program.
struct folder {
  std::filesystem::path path;
  folder() {
    auto name = (std::filesystem::temp_directory_path() / "adasum-mnist-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    path = name;
  }
  ~folder() { std::filesystem::remove_all(path); }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;

  void write(const char* name, std::string_view bytes) const { std::ofstream(path / name, std::ios::binary) << bytes; }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using adasum::fuzz::require;
  static const folder files;
  if (size < 2) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto cut = std::min<std::size_t>(data[0] + 256u * data[1], rest.size());
  files.write("t10k-images-idx3-ubyte", rest.substr(0, cut));
  files.write("t10k-labels-idx1-ubyte", rest.substr(cut));
  try {
    const auto images = read_mnist(files.path);
    require(images.pixels.size() == images.size() * image_set::image_size, "as many images as labels");
    require(std::ranges::all_of(images.labels, [](auto label) { return label >= 0 && label <= 9; }),
            "labels are digits");
    require(std::ranges::all_of(images.pixels, [](float pixel) { return pixel >= 0 && pixel <= 1; }),
            "pixels are between 0 and 1");
  } catch (const std::runtime_error& wrong) {
    require(std::string_view(wrong.what()).find("t10k-") != std::string_view::npos, "errors name the file");
  }
  return 0;
}
