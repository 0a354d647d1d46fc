// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Data-parallel logistic regression: every rank holds its own samples, all ranks hold the same weights.
#include <adasum/mpi.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>
#include <vector>

constexpr std::size_t features = 64, samples = 2000, batch = 20;
constexpr int steps = 200;
constexpr float rate = 0.5f;

struct sample {
  std::vector<float> x;
  float label;  // 0 or 1
};

float probability(const std::vector<float>& weights, const std::vector<float>& x) {
  float score = 0;
  for (std::size_t i = 0; i < features; ++i) score += weights[i] * x[i];
  return 1 / (1 + std::exp(-score));
}

/// Samples whose labels follow a common hidden model, so that the ranks' data differ but tell the same story.
std::vector<sample> generate(int rank) {
  std::mt19937 common(1), own(static_cast<unsigned>(100 + rank));
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> uniform;
  std::vector<float> hidden(features);
  for (auto& weight : hidden) weight = normal(common);
  std::vector<sample> data(samples, {std::vector<float>(features), 0});
  for (auto& [x, label] : data) {
    for (auto& value : x) value = normal(own);
    label = uniform(own) < probability(hidden, x) ? 1.0f : 0.0f;
  }
  return data;
}

/// Mean cross entropy over the samples of all ranks.
double loss(const std::vector<float>& weights, const std::vector<sample>& data, int ranks) {
  double sum = 0;
  for (const auto& [x, label] : data) sum -= std::log(std::abs(1 - label - probability(weights, x)) + 1e-7f);
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum / static_cast<double>(samples) / ranks;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const auto data = generate(rank);
  std::vector<float> weights(features, 0.0f), gradient(features);
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const double first_loss = loss(weights, data, ranks);

  for (int step = 0; step < steps; ++step) {
    std::fill(gradient.begin(), gradient.end(), 0.0f);
    for (std::size_t b = 0; b < batch; ++b) {
      const auto& [x, label] = data[(static_cast<std::size_t>(step) * batch + b) % samples];
      const float error = probability(weights, x) - label;
      for (std::size_t i = 0; i < features; ++i) gradient[i] += error * x[i] / static_cast<float>(batch);
    }
    adasum::adasum_allreduce(adasum::serial_space{}, comm, gradient);
    for (std::size_t i = 0; i < features; ++i) weights[i] -= rate * gradient[i];
  }

  const double last_loss = loss(weights, data, ranks);
  if (rank == 0) std::cout << ranks << " ranks: loss " << first_loss << " before, " << last_loss << " after\n";
  MPI_Finalize();
  return last_loss < 0.7 * first_loss ? 0 : 1;
}
