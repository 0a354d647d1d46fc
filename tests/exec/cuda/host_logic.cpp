// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What cuda_space asks of the runtime: of the emulated one, which counts.
#include <adasum/pair.hpp>
#include <adasum/tree.hpp>

#include "emulated_cuda/runtime.hpp"
#include "support/device.hpp"
#include "support/random_gradients.hpp"

namespace test_of_exec_cuda_host_logic {

using namespace adasum;
using namespace adasum::test;

TEST_CASE("enqueued calls make the host wait for nothing, and from the second on allocate nothing") {
  const stream queue;
  const cuda_space exec(queue);
  const segments cut{30000, 17, 70000};
  const auto arrays = on_device(random_gradients<float>(12, cut.total(), 1));
  const device_array<float> out(std::vector<float>(cut.total(), 7));
  const auto run = [&](std::size_t n) {
    auto spans = spans_of(arrays);
    spans.resize(n);
    enqueue_adasum_tree(exec, spans, out.all(), cut);
  };
  for (const std::size_t n : {2, 8, 12}) {
    CAPTURE(n);
    const auto start = emulated_cuda::count();
    run(n);
    const auto first = emulated_cuda::count();
    run(n);
    const auto second = emulated_cuda::count();
    CHECK(first.host_waits == start.host_waits);
    CHECK(second.host_waits == start.host_waits);
    CHECK(second.allocations == first.allocations);
  }
}

TEST_CASE("one kernel for each step whatever the number of segments; one in all where a pair fits on the chip") {
  const stream queue;
  const cuda_space exec(queue);
  const auto kernels = [&](std::size_t n, std::size_t length, std::size_t count) {
    const segments cut{random_segments(length, count, 3)};
    const auto arrays = on_device(random_gradients<float>(n, length, 1));
    const device_array<float> out(std::vector<float>(length, 7));
    const auto before = emulated_cuda::count().kernels;
    enqueue_adasum_tree(exec, spans_of(arrays), out.all(), cut);
    return emulated_cuda::count().kernels - before;
  };
  CHECK(kernels(2, 9000, 1) == 1);
  CHECK(kernels(2, 200000, 1) == 4);
  CHECK(kernels(2, 200000, 161) == 4);
  CHECK(kernels(8, 9000, 161) == 4);
}

TEST_CASE("results stay on the device until somebody asks") {
  const stream queue;
  const cuda_space exec(queue);
  const device_array<float> a(std::vector<float>(5, 2)), b(std::vector<float>(5, 2)), out(std::vector<float>(5, 7));
  enqueue_adasum_pair(exec, a.all(), b.all(), out.all());
  exec.fence();
  CHECK(out.values()[4] == 2);
}

TEST_CASE("tables of windows are kept, the oldest forgotten, not those of a graph") {
  const stream queue;
  detail::cuda::tile_tables tables;
  const segments first{10, 20};
  const auto& kept = tables.find(whole(first), 4096, queue, 0);
  const auto* const address = kept.tiles.data();
  CHECK(kept.count == 2);
  for (std::size_t length = 1; length < detail::cuda::tile_tables::most; ++length)
    tables.find(whole(segments{length}), 4096, queue, 0);
  const graph refers(queue, [&] {
    CHECK(tables.find(whole(first), 4096, queue, 0).tiles.data() == address);
    CHECK_THROWS_AS(tables.find(whole(first), 1024, queue, 0), bad_input);  // another length of tiles
  });
  for (std::size_t length = 100; length < 300; ++length) tables.find(whole(segments{length}), 4096, queue, 0);
  const auto before = emulated_cuda::count().allocations;
  CHECK(tables.find(whole(first), 4096, queue, 0).tiles.data() == address);
  CHECK(emulated_cuda::count().allocations == before);
  tables.find(whole(segments{1}), 4096, queue, 0);  // forgotten, made again
  CHECK(emulated_cuda::count().allocations > before);
}

TEST_CASE("more windows than are kept, all of them in graphs: each call has its own table") {
  const stream queue;
  const cuda_space exec(queue);
  const auto reduce = [&](std::size_t length) {
    const device_array<float> a(std::vector<float>(length, 2)), out(std::vector<float>(length, 0));
    enqueue_adasum_pair(exec, a.all(), a.all(), out.all());
    exec.fence();
    return out.values();
  };
  for (std::size_t length = 1; length <= detail::cuda::tile_tables::most + 10; ++length) {
    reduce(length);
    const device_array<float> a(std::vector<float>(length, 2));
    const graph recorded(queue, [&] { enqueue_adasum_pair(exec, a.all(), a.all(), a.all()); });
  }
  CHECK(reduce(5000) == std::vector<float>(5000, 2));
}

TEST_CASE("a graph keeps the memory that it was recorded with, whatever larger calls come later") {
  const stream queue;
  const cuda_space exec(queue);
  const auto small = on_device(random_gradients<float>(3, 30000, 1));
  const device_array<float> out(std::vector<float>(30000, 7));
  const auto run = [&] { enqueue_adasum_tree(exec, spans_of(small), out.all()); };
  run();
  const auto expected = out.values();
  const graph recorded(queue, run);
  const auto large = on_device(random_gradients<float>(6, 300000, 2));
  enqueue_adasum_tree(exec, spans_of(large), large[0].all());
  exec.fence();
  std::vector<device_array<float>> others;  // where freed memory would be given away again
  for (std::size_t size = 16; size < 4096; size *= 2) others.emplace_back(std::vector<float>(size, 5));
  recorded.launch(queue);
  exec.fence();
  CHECK(out.values() == expected);
  for (const auto& other : others)
    for (const float value : other.values()) CHECK(value == 5);
}

TEST_CASE("too many blocks are refused by name, none are nothing to do") {
  const auto never = [](std::size_t blocks) {
    detail::cuda::launch("write_arguments", detail::cuda::write_arguments<>, {blocks, 1}, nullptr,
                         detail::cuda::argument_values{}, 0, nullptr);
  };
  never(0);
  CHECK_THROWS_WITH_AS(never(std::size_t{1} << 31), doctest::Contains("combine fewer vectors or fewer segments"), bad_input);
}

TEST_CASE("first_tiles counts the tiles before each segment") {
  const segments cut{5, 0, 9, 0, 4};
  const auto tiles = detail::tiles_of(whole(cut), 4);
  CHECK(detail::first_tiles(tiles, cut.size()) == std::vector<std::size_t>{0, 2, 2, 5, 5, 6});
}

}  // namespace test_of_exec_cuda_host_logic
