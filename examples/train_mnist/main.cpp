// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Data-parallel training of a small convolutional network with gradients combined by Adasum, or by a sum or a mean.
#include <algorithm>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include "data.hpp"
#include "trainer.hpp"

namespace {

/// MPI, initialised for the life of the object.
struct mpi_session {
  mpi_session(int& argc, char**& argv) { MPI_Init(&argc, &argv); }
  ~mpi_session() { MPI_Finalize(); }
  mpi_session(const mpi_session&) = delete;
  mpi_session& operator=(const mpi_session&) = delete;
};

struct split_images {
  labelled_images training, held_out;
};

/// Shuffled, standardised by the mean and deviation of the training images, and split.
split_images load(const training_options& chosen) {
  constexpr std::size_t generated_held_out = 1808;
  const auto images = shuffled(
      chosen.data.empty() ? generate_digits(chosen.images + generated_held_out, chosen.seed) : read_mnist(chosen.data),
      chosen.seed);
  if (chosen.images >= images.size())
    throw std::runtime_error("there are only " + std::to_string(images.size()) + " images; some must be held out");
  constexpr auto side = static_cast<std::int64_t>(image_set::side);
  const auto count = static_cast<std::int64_t>(images.size()), training = static_cast<std::int64_t>(chosen.images);
  auto pixels = torch::tensor(images.pixels).reshape({count, 1, side, side});
  const auto labels = torch::tensor(images.labels);
  const auto seen = pixels.slice(0, 0, training);
  pixels = (pixels - seen.mean()) / seen.std();
  return {{pixels.slice(0, 0, training), labels.slice(0, 0, training)},
          {pixels.slice(0, training), labels.slice(0, training)}};
}

double accuracy(digit_network& network, const labelled_images& data) {
  const torch::NoGradGuard no_gradients;
  return network.forward(data.images).argmax(1).eq(data.labels).to(torch::kDouble).mean().item<double>();
}

/// The combined gradients are bitwise the same on all ranks, so the weights must be.
void require_same_weights(const digit_network& network) {
  const torch::NoGradGuard no_gradients;
  std::vector<torch::Tensor> parts;
  for (const auto& parameter : network.parameters()) parts.push_back(parameter.flatten());
  const auto mine = torch::cat(parts).view(torch::kInt32);
  auto of_rank_0 = mine.clone();
  MPI_Bcast(of_rank_0.data_ptr(), static_cast<int>(of_rank_0.numel()), MPI_INT, 0, MPI_COMM_WORLD);
  if (!torch::equal(mine, of_rank_0)) throw std::runtime_error("the ranks' weights have drifted apart");
}

/// Adds up over ranks, on rank 0.
void sum_over_ranks(std::vector<double>& values, int rank) {
  const auto count = static_cast<int>(values.size());
  MPI_Reduce(rank == 0 ? MPI_IN_PLACE : values.data(), values.data(), count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}

/// "A -> B": the means of value(step) over the first and the last tenth of the steps.
template <class Value>
std::string first_and_last_tenth(std::size_t steps, Value value) {
  const auto tenth = std::max<std::size_t>(1, steps / 10);
  const auto mean = [&](std::size_t first) {
    double sum = 0;
    for (auto step = first; step < first + tenth; ++step) sum += value(step);
    return sum / static_cast<double>(tenth);
  };
  std::ostringstream text;
  text << std::fixed << std::setprecision(3) << mean(0) << " -> " << mean(steps - tenth);
  return text.str();
}

void append_row(const std::filesystem::path& csv, const std::string& rule, std::size_t workers, double result) {
  const bool is_new = !std::filesystem::exists(csv);
  std::ofstream file(csv, std::ios::app);
  if (is_new) file << "rule,workers,accuracy\n";
  file << rule << ',' << workers << ',' << std::fixed << std::setprecision(4) << result << '\n';
  if (!file.flush()) throw std::runtime_error("cannot write " + csv.string());
}

/// step,images,loss,orthogonality: the loss per worker, ‖result‖² / Σ‖gᵢ‖².
void write_history(const std::filesystem::path& csv, std::size_t workers, const training_history& history) {
  std::ofstream file(csv);
  file << "step,images,loss,orthogonality\n";
  for (std::size_t step = 0; step < history.loss.size(); ++step)
    file << step << ',' << (step + 1) * workers * static_cast<std::size_t>(batch_size) << ','
         << history.loss[step] / static_cast<double>(workers) << ','
         << history.result_square[step] / history.input_square[step] << '\n';
  if (!file.flush()) throw std::runtime_error("cannot write " + csv.string());
}

void train_and_tell(const split_images& data, const training_options& chosen, const std::string& rule,
                    std::size_t workers, const adasum::mpi_communicator& comm) {
  const auto rank = comm.rank();
  torch::manual_seed(chosen.seed);
  std::ostringstream title;
  title << std::left << std::setw(6) << rule << std::right << std::setw(4) << workers
        << (workers == 1 ? " worker " : " workers");
  progress_bar progress(title.str(), rank == 0 && chosen.progress);
  digit_network network;
  auto history = train(network, data.training, chosen, rule_of(rule), workers, comm, progress);

  require_same_weights(network);
  sum_over_ranks(history.loss, rank);
  sum_over_ranks(history.input_square, rank);
  if (rank != 0) return;

  const auto result = accuracy(network, data.held_out);
  const auto steps = history.loss.size();
  std::ostringstream line;
  line << "accuracy " << std::fixed << std::setprecision(4) << result << "  loss "
       << first_and_last_tenth(steps, [&](auto s) { return history.loss[s] / static_cast<double>(workers); });
  if (rule == "adasum")
    line << "  orthogonality "
         << first_and_last_tenth(steps, [&](auto s) { return history.result_square[s] / history.input_square[s]; });
  progress.finish(line.str());
  if (!chosen.csv.empty()) append_row(chosen.csv, rule, workers, result);
  if (!chosen.history.empty())
    write_history(chosen.history + "-" + rule + "-" + std::to_string(workers) + ".csv", workers, history);
}

void run(const training_options& chosen) {
  torch::set_num_threads(1);  // the ranks share the cores
  const adasum::mpi_communicator comm{MPI_COMM_WORLD};
  const auto data = load(chosen);
  const auto batches = chosen.images / static_cast<std::size_t>(batch_size) * chosen.epochs;
  if (batches < std::ranges::max(chosen.workers)) throw std::runtime_error("too few images for a batch of each worker");
  for (const auto workers : chosen.workers)
    for (const auto& rule : chosen.rules) train_and_tell(data, chosen, rule, workers, comm);
}

}  // namespace

int main(int argc, char** argv) {
  const mpi_session mpi(argc, argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  try {
    const auto chosen = parse_options(argc, argv, ranks);
    if (!chosen.help)
      run(chosen);
    else if (rank == 0)
      std::cout << usage();
    return 0;
  } catch (const std::invalid_argument& problem) {  // all ranks read the same command line
    if (rank == 0) std::cerr << "train_mnist: " << problem.what() << "\n\n" << usage();
    return 2;
  } catch (const std::exception& problem) {
    std::cerr << "train_mnist, rank " << rank << ": " << problem.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}
