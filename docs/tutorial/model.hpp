// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The model that the tutorial's programs train.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

// A linear model of 1,000 weights. Each example has ten features, like the words of a short sentence: five of the 20 common
// ones, and five of the 980 rare ones.
constexpr int common = 20, rare = 980, features = common + rare, batch = 16;

// The weights that training should find.
inline float truth(int feature) { return std::sin(static_cast<float>(feature)); }

// Draws a batch of examples. Writes the gradient of their mean squared error, and returns that error.
inline float gradient_of(const std::vector<float>& weights, std::mt19937& random, std::vector<float>& gradient) {
  std::fill(gradient.begin(), gradient.end(), 0.0f);
  float loss = 0;
  for (int example = 0; example < batch; ++example) {
    int has[10];
    for (int k = 0; k < 10; ++k) has[k] = static_cast<int>(k < 5 ? random() % common : common + random() % rare);
    float error = 0;
    for (int feature : has) error += weights[feature] - truth(feature);
    loss += error * error / batch;
    for (int feature : has) gradient[feature] += 2 * error / batch;
  }
  return loss;
}
