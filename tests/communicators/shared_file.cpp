// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/communicators/shared_file.hpp>

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <span>

namespace test_of_communicators_shared_file {

/// What the processes of a node share, seen from one process that maps it twice.

using adasum::detail::shared_file;

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
  // Where a size has 32 bits, there may be as much as it can say.
  if constexpr (sizeof(std::size_t) > 4) CHECK(first.take(0, std::numeric_limits<std::size_t>::max() / 16) != 0);
  REQUIRE(none.map(size) == 0);
  CHECK(std::ranges::count(std::span(none.base(), size), std::byte{0}) == size);
}

TEST_CASE("a process that holds its place is seen by the others until it is gone, however it goes") {
  shared_file::name name;
  shared_file file;
  REQUIRE(file.create(name, size) == 0);
  REQUIRE(file.map(size, true) == 0);
  CHECK_FALSE(file.is_held(1));
  std::array<int, 2> holds{};
  REQUIRE(pipe(holds.data()) == 0);
  const auto other = fork();
  REQUIRE(other >= 0);
  if (other == 0) {
    shared_file its_own;
    const char is_well = its_own.open(name) == 0 && its_own.hold(1) == 0 && its_own.map(size, true) == 0;
    if (write(holds[1], &is_well, 1) == 1) pause();
    _exit(1);
  }
  char is_well = 0;
  CHECK(read(holds[0], &is_well, 1) == 1);
  CHECK(is_well == 1);
  CHECK(file.is_held(1));
  CHECK_FALSE(file.is_held(0));
  kill(other, SIGKILL);
  int status = 0;
  CHECK(waitpid(other, &status, 0) == other);
  CHECK_FALSE(file.is_held(1));
  shared_file::remove(name);
  close(holds[0]);
  close(holds[1]);
}

}  // namespace test_of_communicators_shared_file
