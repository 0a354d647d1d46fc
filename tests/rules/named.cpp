// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/rules/named.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <adasum/adasum.hpp>

#include "support/named_rule_checks.hpp"
#include "support/ranks.hpp"

namespace test_of_rules_named {

using namespace adasum;
using namespace adasum::test;

TEST_CASE("a rule by its name does what the rule does, to the last bit") {
  check_named(rules::named, "adasum", rules::adasum{});
  check_named(rules::named, "adasum_linear", rules::adasum_linear{});
  check_named(rules::named, "sum", rules::sum{});
  check_named(rules::named, "mean", rules::mean{});
  check_named(rules::named, "unit_mean", rules::unit_mean{});
  check_named(rules::named, "adacons", rules::adacons{});
  check_named(rules::named, "multi_krum", rules::multi_krum{});
  check_named(rules::named, "geometric_median", rules::geometric_median{});
  check_named(rules::named, "centred_clipping", rules::centred_clipping{});
  check_named(rules::named, "gradient_agreement_filtering", rules::gradient_agreement_filtering{});
  check_named(rules::named, "pcgrad", rules::pcgrad{});
  check_named(rules::named, "gradvac", rules::gradvac{});
}

TEST_CASE("a rule by its name takes all of its parameters") {
  using rules::adacons, rules::multi_krum, rules::gradient_agreement_filtering;
  check_named(rules::named,
              "adacons:momentum=0.5,epsilon=0.25,scale=mean_norm,guard=0.125,unsorting=as_published,per_segment=yes",
              adacons{.momentum = 0.5,
                      .epsilon = 0.25,
                      .scale = adacons::scaling::mean_norm,
                      .per_segment = true,
                      .guard = 0.125,
                      .unsorting = adacons::unsort::as_published});
  check_named(rules::named, "multi_krum:byzantine=1,selected=2,neighbours=byzfl,distance=plain,per_segment=yes",
              multi_krum{.byzantine = 1,
                         .selected = 2,
                         .per_segment = true,
                         .neighbours = multi_krum::neighbourhood::byzfl,
                         .distance = multi_krum::metric::plain});
  check_named(rules::named, "geometric_median:smoothing=0.5,iterations=2,per_segment=yes",
              rules::geometric_median{.smoothing = 0.5, .iterations = 2, .per_segment = true});
  check_named(rules::named, "centred_clipping:radius=0.5,iterations=2,per_segment=yes",
              rules::centred_clipping{.radius = 0.5, .iterations = 2, .per_segment = true});
  check_named(rules::named, "gradient_agreement_filtering:threshold=1.01,averaging=halves,per_segment=yes",
              gradient_agreement_filtering{
                  .threshold = 1.01, .averaging = gradient_agreement_filtering::averages::halves, .per_segment = true});
  check_named(rules::named, "pcgrad:seed=7,average=yes,per_segment=yes",
              rules::pcgrad{.seed = 7, .average = true, .per_segment = true});
  check_named(
      rules::named, "gradvac:beta=0.5,target=0.25,epsilon=1e-6,seed=7,average=yes,per_segment=yes",
      rules::gradvac{.beta = 0.5, .target = 0.25, .epsilon = 1e-6, .seed = 7, .average = true, .per_segment = true});
}

TEST_CASE("nearest_neighbour_mixing takes the name of another rule, with its parameters") {
  using rules::nearest_neighbour_mixing;
  check_named(rules::named, "nearest_neighbour_mixing:byzantine=2,rule=adasum",
              nearest_neighbour_mixing<rules::adasum>{.byzantine = 2});
  check_named(rules::named, "nearest_neighbour_mixing:rule=adacons:momentum=0.5,per_segment=1",
              nearest_neighbour_mixing<rules::adacons>{.rule = {.momentum = 0.5, .per_segment = true}});
  check_named(rules::named, "nearest_neighbour_mixing:byzantine=1,rule=multi_krum:byzantine=1,selected=3",
              nearest_neighbour_mixing<rules::multi_krum>{.byzantine = 1, .rule = {.byzantine = 1, .selected = 3}});
}

TEST_CASE("a copy of a rule that was chosen by its name has a state of its own") {
  auto rule = rules::named("gradvac:beta=0.5");
  const auto gradients = random_gradients<float>(4, 30, 5);
  std::vector<float> first(30), again(30), second(30);
  auto copy = rule;
  combine(serial_space{}, gradients, first, rule);
  combine(serial_space{}, gradients, second, rule);
  combine(serial_space{}, gradients, again, copy);
  CHECK(again == first);
  CHECK(second != first);
}

TEST_CASE("a name that is none, and parameters that are none, are refused with what there is") {
  const std::string all =
      "adasum, adasum_linear, sum, mean, unit_mean, adacons, multi_krum, geometric_median, centred_clipping, "
      "gradient_agreement_filtering, pcgrad, gradvac, nearest_neighbour_mixing";
  CHECK(rules::names_of_rules() == all);
  const std::string those = "there are " + all + "; rules/eigen/named.hpp has more";
  const auto refused = [](const char* text) { return refusal_of(rules::named, text); };
  CHECK(refused("median") == "adasum: there is no rule 'median'; " + those);
  CHECK(refused("") == "adasum: there is no rule ''; " + those);
  CHECK(refused("adasum ") == "adasum: there is no rule 'adasum '; " + those);
  CHECK(refused("mean:x=1") == "adasum: the rule mean: there is no 'x'; nothing can be given");
  CHECK(refused("centred_clipping:radios=1") ==
        "adasum: the rule centred_clipping: there is no 'radios'; there are radius, iterations, per_segment");
  CHECK(refused("centred_clipping:radius=wide") ==
        "adasum: the rule centred_clipping: radius is 'wide'; it must be a number that is not negative");
  CHECK(refused("nearest_neighbour_mixing:byzantine=1").find("give it last") != std::string::npos);
  CHECK(refused("nearest_neighbour_mixing:rule=median") == "adasum: there is no rule 'median'; " + those);
  CHECK(refused("nearest_neighbour_mixing:f=1,rule=mean") ==
        "adasum: the rule nearest_neighbour_mixing: there is no 'f'; there are byzantine, rule");
}

TEST_CASE("a parameter beyond what the rule is defined for is refused") {
  const auto expected_of = [](const char* text) -> std::string {
    const std::string message = refusal_of(rules::named, text);
    return message.substr(std::min(message.size(), message.find("; it must be ")));
  };
  for (const char* text :
       {"gradvac:beta=0", "gradvac:beta=1", "adacons:momentum=0", "adacons:momentum=0.9999999999999999",
        "geometric_median:smoothing=5e-324", "centred_clipping:radius=0", "adacons:guard=0",
        "gradient_agreement_filtering:threshold=0", "gradient_agreement_filtering:threshold=2"})
    CHECK_NOTHROW(rules::named(text));
  for (const char* text : {"gradvac:beta=1.0000000000000002", "gradvac:beta=-5e-324", "gradvac:beta=nan"})
    CHECK(expected_of(text) == "; it must be a number from 0 to 1");
  for (const char* text : {"adacons:momentum=1", "adacons:momentum=-1"})
    CHECK(expected_of(text) == "; it must be a number from 0 on, but below 1");
  for (const char* text : {"geometric_median:smoothing=0", "geometric_median:smoothing=-1"})
    CHECK(expected_of(text) == "; it must be a number above 0");
  for (const char* text : {"gradient_agreement_filtering:threshold=2.1", "gradient_agreement_filtering:threshold=-1"})
    CHECK(expected_of(text) == "; it must be a number from 0 to 2");
  for (const char* text :
       {"centred_clipping:radius=-2", "adacons:epsilon=-1", "adacons:guard=-1", "gradvac:epsilon=-1"})
    CHECK(expected_of(text) == "; it must be a number that is not negative");
}

TEST_CASE("ranks reduce under a rule that was chosen by its name, and compare which it is") {
  const auto gradients = random_gradients<float>(3, 50, 9);
  const auto reduce = [&](const thread_communicator& comm, const char* text) {
    auto gradient = gradients[static_cast<std::size_t>(comm.rank())];
    auto rule = rules::named(text);
    const auto found = combine_allreduce(serial_space{}, comm, gradient, rule);
    CHECK(found.rule() == std::string(text).substr(0, std::string_view(text).find(':')));
    return gradient;
  };
  std::vector<float> expected(50);
  combine(serial_space{}, gradients, expected, rules::centred_clipping{.radius = 0.5});
  for (const auto& result :
       results_of(on_ranks(3, [&](const auto& comm) { return reduce(comm, "centred_clipping:radius=0.5"); })))
    CHECK(result == expected);
  for (const auto& message : results_of(on_ranks(2, [&](const thread_communicator& comm) -> std::string {
         try {
           reduce(comm, comm.rank() == 0 ? "pcgrad" : "gradvac");
         } catch (const agreement_error& error) {
           return error.what();
         }
         return std::string("agreed");
       })))
    CHECK(message == "adasum: the ranks disagree on the rule: rank 0 has pcgrad, rank 1 has gradvac");
}

}  // namespace test_of_rules_named
