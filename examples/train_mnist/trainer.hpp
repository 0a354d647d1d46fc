// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <torch/torch.h>

#include <adasum/adasum.hpp>
#include <adasum/communicators/mpi.hpp>
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "model.hpp"
#include "options.hpp"
#include "progress_bar.hpp"
#include "rules.hpp"

/// Images as tensors: [n, 1, 28, 28] floats with n labels.
struct labelled_images {
  torch::Tensor images, labels;
};

/// What happened in each step. Squared norms only where the rule looks at them.
struct training_history {
  std::vector<double> loss;           ///< summed over this rank's workers
  std::vector<double> result_square;  ///< ‖combined gradient‖²; the same on all ranks
  std::vector<double> input_square;   ///< Σ ‖gᵢ‖² over this rank's workers
};

constexpr std::int64_t batch_size = 8;
constexpr double momentum = 0.5;
constexpr double warmup = 0.17;  // fraction of the steps

/// Linear warm-up to the peak, then linear decay to zero.
inline double scheduled_rate(double peak, std::size_t step, std::size_t steps) {
  const auto all = static_cast<double>(steps), done = static_cast<double>(step), rising = warmup * all;
  return peak * std::min({1.0, (done + 1) / rising, (all - done) / (all - rising)});
}

/// Image numbers in the order in which they are trained on, shuffled anew in each epoch.
inline torch::Tensor training_order(std::int64_t images, std::size_t epochs, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::int64_t> epoch(static_cast<std::size_t>(images)), order;
  std::iota(epoch.begin(), epoch.end(), std::int64_t{0});
  for (std::size_t e = 0; e < epochs; ++e) {
    std::shuffle(epoch.begin(), epoch.end(), random);
    order.insert(order.end(), epoch.begin(), epoch.end());
  }
  return torch::tensor(order);
}

/// One segment per parameter tensor.
inline adasum::segments segments_of(const std::vector<torch::Tensor>& parameters) {
  std::vector<std::int64_t> lengths;
  for (const auto& parameter : parameters) lengths.push_back(parameter.numel());
  return adasum::segments(lengths);
}

/// Data-parallel training. In each step worker w takes batch w of the step; rank r plays the workers r·K … r·K + K - 1, where
/// K = workers / ranks, combines their gradients first, and then takes part in the combination over ranks. With K and the
/// number of ranks powers of two, that is the tree over all workers; for rules that are not pairwise, the rule of the ranks'
/// results.
inline training_history train(digit_network& network, const labelled_images& data, const training_options& chosen,
                              const adasum::rules::any_rule& rule, std::size_t workers,
                              const adasum::mpi_communicator& comm, progress_bar& progress) {
  const auto parameters = network.parameters();
  const auto segments = segments_of(parameters);
  const adasum::serial_space exec;
  adasum::options choices;
  choices.measure = adasum::measuring::when_needed;
  auto local_rule = rule;  // the plan has a copy, with state of its own
  auto plan = adasum::plan_allreduce<float>(exec, comm, segments, local_rule, choices);

  const auto of_this_rank = workers / static_cast<std::size_t>(comm.size());
  std::vector<std::vector<float>> gradients(of_this_rank, std::vector<float>(segments.total()));
  std::vector<flat_gradient> worker_gradients;
  for (auto& gradient : gradients) worker_gradients.emplace_back(parameters, gradient);
  flat_gradient combined(parameters, plan.buffer());
  torch::optim::SGD optimizer(parameters, torch::optim::SGDOptions(chosen.rate).momentum(momentum));

  const auto order = training_order(data.labels.size(0), chosen.epochs, chosen.seed).split(batch_size);
  const auto steps = static_cast<std::size_t>(data.labels.size(0) / batch_size) * chosen.epochs / workers;
  training_history history;
  for (std::size_t step = 0; step < steps; ++step) {
    const auto first_batch = step * workers + static_cast<std::size_t>(comm.rank()) * of_this_rank;
    double loss_sum = 0;
    for (std::size_t worker = 0; worker < of_this_rank; ++worker) {
      const auto& rows = order[first_batch + worker];
      std::ranges::fill(gradients[worker], 0.0f);
      worker_gradients[worker].attach();
      const auto scores = network.forward(data.images.index_select(0, rows));
      const auto loss = torch::nn::functional::cross_entropy(scores, data.labels.index_select(0, rows));
      loss.backward();
      loss_sum += loss.item<double>();
    }

    const auto of_workers = adasum::combine(exec, gradients, plan.buffer(), local_rule, segments, choices);
    const auto& of_ranks = plan();

    combined.attach();
    static_cast<torch::optim::SGDOptions&>(optimizer.param_groups()[0].options())
        .lr(scheduled_rate(chosen.rate, step, steps));
    optimizer.step();

    history.loss.push_back(loss_sum);
    history.result_square.push_back(0);
    history.input_square.push_back(0);
    for (std::size_t k = 0; k < segments.size(); ++k) {
      history.result_square.back() += of_ranks.result_norm(k) * of_ranks.result_norm(k);
      for (std::size_t worker = 0; worker < of_this_rank; ++worker)
        history.input_square.back() += of_workers.norm(worker, k) * of_workers.norm(worker, k);
    }
    progress.show(static_cast<double>(step + 1) / static_cast<double>(steps));
  }
  return history;
}
