// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuda_space against what the device can move and against what its libraries offer, in one process, interleaved by the
// repetitions of the benchmark. Device events around enough runs; every case rotates among vectors that the cache does
// not hold, unless it is about the cache. Names: cuda/<case>/<elements>; bytes are those that each vector must at least
// be read or written: 5N for a pair (both twice, one written), 3N on the chip, (2n + 1)N for a tree of n.
#include <benchmark/benchmark.h>

#include <adasum/adasum.hpp>
#include <adasum/exec/cuda.hpp>

#include <cublas_v2.h>
#include <thrust/execution_policy.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <thrust/tuple.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "noise.hpp"

namespace {

using adasum::detail::cuda::check;

cudaStream_t the_stream() {
  static cudaStream_t stream = [] {
    cudaStream_t made = nullptr;
    check("cudaStreamCreate", cudaStreamCreate(&made));
    return made;
  }();
  return stream;
}

const adasum::cuda_space& exec() {
  static const adasum::cuda_space space(the_stream());
  return space;
}

/// Vectors of one element type, as many as are needed to leave the cache cold between two uses.
template <class T>
class vectors {
 public:
  vectors(std::size_t length, std::size_t at_once, bool cold) : length_(length), at_once_(at_once) {
    constexpr std::size_t more_than_the_cache = std::size_t{256} << 20;
    sets_ = cold ? 1 + more_than_the_cache / (at_once * length * sizeof(T)) : 1;
    std::vector<float> noise(length);
    std::vector<T> values(length);
    for (std::size_t v = 0; v < sets_ * at_once; ++v) {
      void* memory = nullptr;
      check("cudaMalloc", cudaMalloc(&memory, length * sizeof(T)));
      memory_.push_back(static_cast<T*>(memory));
      fill_with_noise(std::span(noise), v % 64 + 1);
      for (std::size_t x = 0; x < length; ++x) values[x] = static_cast<T>(noise[x]);
      check("cudaMemcpy", cudaMemcpy(memory, values.data(), length * sizeof(T), cudaMemcpyHostToDevice));
    }
  }
  vectors(const vectors&) = delete;
  ~vectors() {
    for (T* const memory : memory_) cudaFree(memory);
  }
  std::span<T> operator()(std::size_t turn, std::size_t i) const {
    return {memory_[turn % sets_ * at_once_ + i], length_};
  }

 private:
  std::size_t length_, at_once_, sets_ = 1;
  std::vector<T*> memory_;
};

/// run(vectors, turn) on the stream, timed by events.
template <class T>
void add(const std::string& name, std::size_t length, std::size_t at_once, std::size_t moved, bool cold,
         std::function<void(const vectors<T>&, std::size_t)> run) {
  const auto body = [=](benchmark::State& state) {
    const vectors<T> data(length, at_once, cold);
    cudaEvent_t begin = nullptr, end = nullptr;
    check("cudaEventCreate", cudaEventCreate(&begin));
    check("cudaEventCreate", cudaEventCreate(&end));
    constexpr std::size_t runs = 20;
    std::size_t turn = 0;
    for (std::size_t r = 0; r < 3; ++r) run(data, turn++);  // tables, workspace, module
    for (auto _ : state) {
      check("cudaEventRecord", cudaEventRecord(begin, the_stream()));
      for (std::size_t r = 0; r < runs; ++r) run(data, turn++);
      check("cudaEventRecord", cudaEventRecord(end, the_stream()));
      check("cudaEventSynchronize", cudaEventSynchronize(end));
      float milliseconds = 0;
      check("cudaEventElapsedTime", cudaEventElapsedTime(&milliseconds, begin, end));
      state.SetIterationTime(static_cast<double>(milliseconds) / 1e3 / runs);
    }
    check("cudaGetLastError", cudaGetLastError());
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(moved * length * sizeof(T)));
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
  };
  benchmark::RegisterBenchmark(("cuda/" + name + "/" + std::to_string(length)).c_str(), body)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond)
      ->Iterations(5);
}

adasum::segments one_segment(std::size_t length) { return adasum::segments{length}; }

/// Lengths like those of ResNet-50's 161 parameters: a few large ones, many short ones.
adasum::segments like_resnet50(std::size_t length) {
  std::vector<std::size_t> lengths;
  std::size_t left = length;
  for (int k = 0; k < 107; ++k) lengths.push_back(64u << (k % 6)), left -= lengths.back();
  for (int k = 0; k < 53; ++k) lengths.push_back(left / 54 / 64 * 64);
  lengths.push_back(left - 53 * (left / 54 / 64 * 64));
  return adasum::segments(lengths);
}

template <class T>
void pair(const std::string& name, std::size_t length, const adasum::segments& cut, std::size_t moved,
          bool cold = true) {
  add<T>(name, length, 2, moved, cold, [cut](const vectors<T>& data, std::size_t turn) {
    adasum::enqueue_adasum_pair(exec(), data(turn, 0), data(turn, 1), data(turn, 0), cut);
  });
}

/// The same kernels without the one that keeps vectors on the chip.
void pair_in_two_passes(std::size_t length) {
  add<float>("pair_two_passes/float", length, 2, 5, false,
             [cut = one_segment(length)](const vectors<float>& data, std::size_t turn) {
               const float* const both[] = {data(turn, 0).data(), data(turn, 1).data()};
               const auto window = whole(cut);
               const auto* const gram = exec().measure_on_device<float>(window, std::span<const float* const>(both));
               const auto* const weights = exec().weigh_on_device(adasum::rules::adasum{}, gram, 1, 2);
               exec().mix_on_device<float>(window, std::span<const float* const>(both), weights, data(turn, 0).data());
             });
}

void tree(std::size_t n, std::size_t length) {
  add<float>("tree" + std::to_string(n) + "/float", length, n, 2 * n + 1, true,
             [n, cut = one_segment(length)](const vectors<float>& data, std::size_t turn) {
               std::vector<std::span<float>> all;
               for (std::size_t i = 0; i < n; ++i) all.push_back(data(turn, i));
               adasum::enqueue_adasum_tree(exec(), all, data(turn, 0), cut);
             });
}
void seven_pairs(std::size_t length) {
  add<float>("seven_pairs/float", length, 8, 17, true,
             [cut = one_segment(length)](const vectors<float>& data, std::size_t turn) {
               for (std::size_t width = 1; width < 8; width *= 2)
                 for (std::size_t i = 0; i < 8; i += 2 * width)
                   adasum::enqueue_adasum_pair(exec(), data(turn, i), data(turn, i + width), data(turn, i), cut);
             });
}

/// What one copy of the device moves: the ceiling.
void copy(std::size_t length) {
  add<float>("copy/float", length, 2, 2, true, [length](const vectors<float>& data, std::size_t turn) {
    check("cudaMemcpyAsync", cudaMemcpyAsync(data(turn, 0).data(), data(turn, 1).data(), length * sizeof(float),
                                             cudaMemcpyDeviceToDevice, the_stream()));
  });
}

void with_cublas(std::size_t length) {
  static cublasHandle_t handle = [] {
    cublasHandle_t made = nullptr;
    if (cublasCreate(&made) != CUBLAS_STATUS_SUCCESS) throw std::runtime_error("cublasCreate failed");
    cublasSetStream(made, the_stream());
    return made;
  }();
  add<float>("cublas/float", length, 2, 5, true, [length](const vectors<float>& data, std::size_t turn) {
    const int n = static_cast<int>(length);
    float dot = 0, a = 0, b = 0;
    float *const x = data(turn, 0).data(), *const y = data(turn, 1).data();
    cublasSdot(handle, n, x, 1, y, 1, &dot);
    cublasSnrm2(handle, n, x, 1, &a);
    cublasSnrm2(handle, n, y, 1, &b);
    const float of_x = 1 - dot / (2 * a * a), of_y = 1 - dot / (2 * b * b);
    cublasSscal(handle, n, &of_x, x, 1);
    cublasSaxpy(handle, n, &of_y, y, 1, x, 1);
  });
}

struct products {
  __host__ __device__ thrust::tuple<double, double, double> operator()(const thrust::tuple<float, float>& x) const {
    const double a = thrust::get<0>(x), b = thrust::get<1>(x);
    return {a * a, a * b, b * b};
  }
};
struct add_products {
  using three = thrust::tuple<double, double, double>;
  __host__ __device__ three operator()(const three& x, const three& y) const {
    return {thrust::get<0>(x) + thrust::get<0>(y), thrust::get<1>(x) + thrust::get<1>(y),
            thrust::get<2>(x) + thrust::get<2>(y)};
  }
};
struct mixture {
  float of_a, of_b;
  __host__ __device__ float operator()(float a, float b) const { return of_a * a + of_b * b; }
};
void with_thrust(std::size_t length) {
  add<float>("thrust/float", length, 2, 5, true, [length](const vectors<float>& data, std::size_t turn) {
    float *const x = data(turn, 0).data(), *const y = data(turn, 1).data();
    const auto on_stream = thrust::cuda::par.on(the_stream());
    const auto both = thrust::make_zip_iterator(thrust::make_tuple(x, y));
    const auto [aa, ab, bb] = [&] {
      const auto sums = thrust::transform_reduce(on_stream, both, both + static_cast<std::ptrdiff_t>(length),
                                                 products{}, thrust::make_tuple(0.0, 0.0, 0.0), add_products{});
      return std::tuple(thrust::get<0>(sums), thrust::get<1>(sums), thrust::get<2>(sums));
    }();
    const mixture mix{static_cast<float>(1 - ab / (2 * aa)), static_cast<float>(1 - ab / (2 * bb))};
    thrust::transform(on_stream, x, x + length, y, x, mix);
  });
}

}  // namespace

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("skipped: there is no CUDA device here");
    return 77;
  }
  constexpr std::size_t mi = std::size_t{1} << 20, large = 64 * mi, resnet50 = 25'557'032;
  copy(large);
  pair<float>("pair/float", large, one_segment(large), 5);
  pair<double>("pair/double", large / 2, one_segment(large / 2), 5);
  pair<__half>("pair/half", large, one_segment(large), 5);
  pair<__nv_bfloat16>("pair/bfloat16", large, one_segment(large), 5);
  with_cublas(large);
  with_thrust(large);
  pair<float>("pair_one_segment/float", resnet50, one_segment(resnet50), 5);
  pair<float>("pair_161_segments/float", resnet50, like_resnet50(resnet50), 5);
  for (const std::size_t length : {mi / 64, mi / 4, mi, 2 * mi, 3 * mi}) {
    pair<float>("pair_on_chip/float", length, one_segment(length), 3, false);
    pair_in_two_passes(length);
  }
  tree(8, 4 * mi);
  seven_pairs(4 * mi);
  tree(16, 4 * mi);
  benchmark::AddCustomContext("device", [] {
    cudaDeviceProp found{};
    cudaGetDeviceProperties(&found, 0);
    return std::string(found.name);
  }());
  benchmark::AddCustomContext("cuda", std::to_string(CUDART_VERSION));
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
