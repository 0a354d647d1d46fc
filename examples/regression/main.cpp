// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The regression study of the AdaCons paper (Choukroun et al., arXiv 2411.03742), for every rule of this library:
//
//     minimise E ½(x·w)²,  x uniform in [0, 1]^d,  w₀ uniform in [-5, 5]^d,  d = 1000
//
// In each update every worker draws a batch of its own, the workers' gradients are combined into ψ, and
// w ← w - (ψ·w / ψ·ψ) ψ: the best step along ψ, so that only ψ's direction counts. All rules see the same batches.
#include <Eigen/Core>

#include <adasum/adasum.hpp>
#include <adasum/rules/eigen/aligned_mtl.hpp>
#include <adasum/rules/eigen/imtl_g.hpp>
#include <adasum/rules/eigen/min_norm.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using vector = Eigen::VectorXf;
using gradient = std::vector<float>;
using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct settings {
  std::size_t workers = 8;
  Eigen::Index batch = 128;
  int seeds = 5, updates = 500, every = 10;
  Eigen::Index dimension = 1000;
};

/// One rule with its weights w, and its state where it has any.
struct contender {
  std::string name;
  std::function<void(const std::vector<gradient>& gradients, gradient& combined)> combine;
  std::vector<gradient> gradients;  // of each worker
};

template <class Rule>
contender make(const char* name, Rule rule) {
  return {name,
          [rule](const std::vector<gradient>& gradients, gradient& combined) mutable {
            adasum::combine(adasum::serial_space{}, gradients, combined, rule);
          },
          {}};
}

std::vector<contender> contenders() {
  namespace rules = adasum::rules;
  return {make("mean", rules::mean{}),
          make("unit_mean", rules::unit_mean{}),
          make("adacons", rules::adacons{.momentum = 0}),
          make("adacons_momentum", rules::adacons{.momentum = 0.99}),
          make("adasum", rules::adasum{}),
          make("adasum_linear", rules::adasum_linear{}),
          make("min_norm", rules::min_norm{}),
          make("multi_krum", rules::multi_krum{.byzantine = 1, .selected = 4}),
          make("imtl_g", rules::imtl_g{}),
          make("aligned_mtl", rules::aligned_mtl{})};
}

/// E ½(x·w)² for x uniform in [0, 1]^d: ½((Σw/2)² + ‖w‖²/12).
double expected_loss(const vector& w) {
  const double sum = w.cast<double>().sum(), square = w.cast<double>().squaredNorm();
  return 0.5 * (sum * sum / 4 + square / 12);
}

/// Fills with numbers uniform in [0, 1), two from each 64 random bits.
void fill_uniform(matrix& x, std::mt19937_64& random) {
  float* const values = x.data();
  for (Eigen::Index i = 0; i < x.size(); i += 2) {
    const std::uint64_t bits = random();
    values[i] = static_cast<float>(bits >> 40) * 0x1p-24f;
    if (i + 1 < x.size()) values[i + 1] = static_cast<float>((bits >> 8) & 0xffffff) * 0x1p-24f;
  }
}

/// The gradient (1/B) Σ (x·w) x of one worker's batch at every rule's w (a column each), a tile of rows at a time.
matrix gradients_of_batch(const matrix& weights, Eigen::Index batch, std::mt19937_64& random) {
  constexpr Eigen::Index tile = 128;
  matrix sum = matrix::Zero(weights.rows(), weights.cols());
  for (Eigen::Index row = 0; row < batch; row += tile) {
    matrix x(std::min(tile, batch - row), weights.rows());
    fill_uniform(x, random);
    const matrix residual = x * weights;
    sum.noalias() += x.transpose() * residual;
  }
  return sum / static_cast<float>(batch);
}

/// Prints workers,batch,seed,rule,update,loss lines.
void run(const settings& chosen, int seed) {
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  auto all = contenders();
  const auto rules = static_cast<Eigen::Index>(all.size());
  matrix start(chosen.dimension, 1);
  fill_uniform(start, random);
  matrix weights = (start.array() * 10 - 5).matrix().replicate(1, rules);
  for (auto& one : all) one.gradients.assign(chosen.workers, gradient(static_cast<std::size_t>(chosen.dimension)));

  gradient combined(static_cast<std::size_t>(chosen.dimension));
  const Eigen::Map<const vector> psi(combined.data(), chosen.dimension);
  for (int update = 0; update <= chosen.updates; ++update) {
    if (update % chosen.every == 0)
      for (Eigen::Index r = 0; r < rules; ++r)
        std::printf("%zu,%ld,%d,%s,%d,%.9g\n", chosen.workers, static_cast<long>(chosen.batch), seed,
                    all[static_cast<std::size_t>(r)].name.c_str(), update, expected_loss(weights.col(r)));
    if (update == chosen.updates) break;
    for (std::size_t worker = 0; worker < chosen.workers; ++worker) {
      const auto gradients = gradients_of_batch(weights, chosen.batch, random);
      for (Eigen::Index r = 0; r < rules; ++r)
        Eigen::Map<vector>(all[static_cast<std::size_t>(r)].gradients[worker].data(), chosen.dimension) =
            gradients.col(r);
    }
    for (Eigen::Index r = 0; r < rules; ++r) {
      const auto& one = all[static_cast<std::size_t>(r)];
      one.combine(one.gradients, combined);
      const float square = psi.squaredNorm();
      if (square > 0) weights.col(r) -= psi.dot(weights.col(r)) / square * psi;
    }
  }
  std::fflush(stdout);
}

settings parse(int argc, char** argv) {
  settings chosen;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (++i == argc) throw std::invalid_argument(option + ": a value is missing");
    char* end = nullptr;
    const long number = std::strtol(argv[i], &end, 10);
    if (*end != '\0' || number < 1) throw std::invalid_argument(option + " " + argv[i] + ": must be a positive number");
    if (option == "--workers")
      chosen.workers = static_cast<std::size_t>(number);
    else if (option == "--batch")
      chosen.batch = number;
    else if (option == "--seeds")
      chosen.seeds = static_cast<int>(number);
    else if (option == "--updates")
      chosen.updates = static_cast<int>(number);
    else if (option == "--dimension")
      chosen.dimension = number;
    else
      throw std::invalid_argument("unknown option " + option);
  }
  return chosen;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto chosen = parse(argc, argv);
    std::puts("workers,batch,seed,rule,update,loss");
    for (int seed = 1; seed <= chosen.seeds; ++seed) run(chosen, seed);
  } catch (const std::exception& problem) {
    std::fprintf(stderr,
                 "regression: %s\nusage: regression [--workers N] [--batch B] [--seeds S] [--updates U] [--dimension "
                 "D] > FILE.csv\n",
                 problem.what());
    return 2;
  }
}
