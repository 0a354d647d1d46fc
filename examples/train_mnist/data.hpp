// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

/// Labelled images of digits, 28×28 each, one after the other.
struct image_set {
  static constexpr std::size_t side = 28;
  static constexpr std::size_t image_size = side * side;

  std::vector<float> pixels;         ///< 0 (background) … 1 (ink)
  std::vector<std::int64_t> labels;  ///< 0 … 9

  std::size_t size() const { return labels.size(); }
};

/// Reads t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, MNIST's file of 10,000 images, gzipped (.gz) or not.
/// @throws std::runtime_error naming the file and what is wrong with it
image_set read_mnist(const std::filesystem::path& directory);

/// Digits drawn in a 5×7 font, three pixels a dot, at a random place, with random contrast and noise.
image_set generate_digits(std::size_t count, std::uint64_t seed);

/// The same images in a random order that the seed determines.
image_set shuffled(const image_set& images, std::uint64_t seed);
