// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "data.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

/// A file in MNIST's IDX format; zlib reads it gzipped or plain.
class idx_file {
 public:
  idx_file(const std::filesystem::path& directory, const std::string& name) : path_(directory / name) {
    if (!std::filesystem::exists(path_)) path_ += ".gz";
    file_ = gzopen(path_.c_str(), "rb");
    if (file_ == nullptr)
      throw std::runtime_error("cannot open " + name + " or " + name + ".gz in " + directory.string());
  }
  ~idx_file() { gzclose(file_); }
  idx_file(const idx_file&) = delete;
  idx_file& operator=(const idx_file&) = delete;

  void read(std::span<std::uint8_t> bytes) {
    if (gzread(file_, bytes.data(), static_cast<unsigned>(bytes.size())) != static_cast<int>(bytes.size()))
      fail("is truncated or damaged");
  }

  /// Numbers are stored with the highest byte first.
  std::uint32_t read_number() {
    std::array<std::uint8_t, 4> bytes;
    read(bytes);
    return std::accumulate(bytes.begin(), bytes.end(), 0u,
                           [](std::uint32_t sum, std::uint8_t b) { return sum << 8 | b; });
  }

  void expect_number(std::uint32_t expected, const char* what) {
    if (const auto found = read_number(); found != expected)
      fail(std::string("has ") + what + " " + std::to_string(found) + ", not " + std::to_string(expected));
  }

  [[noreturn]] void fail(const std::string& problem) const { throw std::runtime_error(path_.string() + " " + problem); }

 private:
  std::filesystem::path path_;
  gzFile file_;
};

constexpr std::size_t font_width = 5, font_height = 7, dot = 3;  // dots; dots; pixels
constexpr std::array<std::string_view, 10> font{
    ".###."
    "#...#"
    "#..##"
    "#.#.#"
    "##..#"
    "#...#"
    ".###.",
    "..#.."
    ".##.."
    "..#.."
    "..#.."
    "..#.."
    "..#.."
    ".###.",
    ".###."
    "#...#"
    "....#"
    "...#."
    "..#.."
    ".#..."
    "#####",
    "#####"
    "...#."
    "..#.."
    "...#."
    "....#"
    "#...#"
    ".###.",
    "...#."
    "..##."
    ".#.#."
    "#..#."
    "#####"
    "...#."
    "...#.",
    "#####"
    "#...."
    "####."
    "....#"
    "....#"
    "#...#"
    ".###.",
    "..##."
    ".#..."
    "#...."
    "####."
    "#...#"
    "#...#"
    ".###.",
    "#####"
    "....#"
    "...#."
    "..#.."
    ".#..."
    ".#..."
    ".#...",
    ".###."
    "#...#"
    "#...#"
    ".###."
    "#...#"
    "#...#"
    ".###.",
    ".###."
    "#...#"
    "#...#"
    ".####"
    "....#"
    "...#."
    ".##..",
};

}  // namespace

image_set read_mnist(const std::filesystem::path& directory) {
  idx_file images(directory, "t10k-images-idx3-ubyte"), labels(directory, "t10k-labels-idx1-ubyte");
  images.expect_number(2051, "the magic number");
  labels.expect_number(2049, "the magic number");
  const auto count = images.read_number();
  labels.expect_number(count, "the number of labels");
  images.expect_number(image_set::side, "the image height");
  images.expect_number(image_set::side, "the image width");

  image_set result;
  std::vector<std::uint8_t> bytes(image_set::image_size);
  for (std::uint32_t i = 0; i < count; ++i) {
    images.read(bytes);
    for (const auto byte : bytes) result.pixels.push_back(static_cast<float>(byte) / 255.0f);
  }
  bytes.resize(count);
  labels.read(bytes);
  if (std::ranges::any_of(bytes, [](auto label) { return label > 9; })) labels.fail("has a label above 9");
  result.labels.assign(bytes.begin(), bytes.end());
  return result;
}

image_set generate_digits(std::size_t count, std::uint64_t seed) {
  constexpr auto side = image_set::side;
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::size_t> any_digit(0, 9), any_left(0, side - dot * font_width),
      any_top(0, side - dot * font_height);
  std::uniform_real_distribution<float> any_contrast(0.6f, 1.2f);
  std::normal_distribution<float> noise(0.0f, 0.3f);

  image_set result;
  result.pixels.reserve(count * image_set::image_size);
  for (std::size_t i = 0; i < count; ++i) {
    const auto digit = any_digit(random), left = any_left(random), top = any_top(random);
    const auto contrast = any_contrast(random);
    result.labels.push_back(static_cast<std::int64_t>(digit));
    for (std::size_t y = 0; y < side; ++y)
      for (std::size_t x = 0; x < side; ++x) {
        const auto column = (x - left) / dot, row = (y - top) / dot;
        const bool ink = x >= left && y >= top && column < font_width && row < font_height &&
                         font[digit][row * font_width + column] == '#';
        result.pixels.push_back(std::clamp((ink ? contrast : 0.0f) + noise(random), 0.0f, 1.0f));
      }
  }
  return result;
}

image_set shuffled(const image_set& images, std::uint64_t seed) {
  std::vector<std::size_t> order(images.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
  image_set result;
  result.pixels.reserve(images.pixels.size());
  for (const auto i : order) {
    const auto image = std::span(images.pixels).subspan(i * image_set::image_size, image_set::image_size);
    result.pixels.insert(result.pixels.end(), image.begin(), image.end());
    result.labels.push_back(images.labels[i]);
  }
  return result;
}
