// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/comm/mpi/shared_file.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <span>

namespace test_of_comm_mpi_shared_file {

/// What the processes of a node share, seen from one process that maps it twice.

using adasum::detail::mpi::shared_file;

namespace {
constexpr std::size_t size = 3 * 4096;
}

TEST_CASE("who opens it sees what the maker writes, and keeps it when name and maker are gone") {
  shared_file::name name;
  shared_file other;
  {
    shared_file made;
    REQUIRE(made.create(name, size) == 0);
    CHECK(std::filesystem::exists(name.path));
    REQUIRE(other.open(name) == 0);
    shared_file::remove(name);
    CHECK_FALSE(std::filesystem::exists(name.path));
    REQUIRE(made.take(4096, 8192) == 0);
    REQUIRE(made.map(size) == 0);
    REQUIRE(other.map(size) == 0);
    CHECK(made.base() != other.base());
    CHECK(std::ranges::count(std::span(other.base(), size), std::byte{0}) == size);
    std::ranges::fill(std::span(made.base(), size), std::byte{7});
  }
  CHECK(std::ranges::count(std::span(other.base(), size), std::byte{7}) == size);
}

TEST_CASE("errors are numbers: no file of that name, more than there is, memory that is mapped without a file") {
  shared_file::name name;
  shared_file first, second, none;
  REQUIRE(first.create(name, size) == 0);
  shared_file::name other = name;
  REQUIRE(second.create(other, size) == 0);
  CHECK(std::filesystem::path(name.path) != other.path);
  shared_file::remove(name);
  shared_file::remove(other);
  CHECK(none.open(name) == ENOENT);
  CHECK(first.take(0, std::size_t{1} << 60) != 0);
  REQUIRE(none.map(size) == 0);
  CHECK(std::ranges::count(std::span(none.base(), size), std::byte{0}) == size);
}

}  // namespace test_of_comm_mpi_shared_file
