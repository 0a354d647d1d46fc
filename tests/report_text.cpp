// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/combine.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/report_text.hpp>
#include <adasum/rules/mean.hpp>
#include <adasum/tree.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace test_of_report_text {

using namespace adasum;

namespace {

/// Segment 0 orthogonal, segment 1 equal.
report example() {
  std::vector<double> out(3);
  return adasum_tree(serial_space{}, std::vector<std::vector<double>>{{3, 0, 5}, {0, 4, 5}}, out, segments{2, 1});
}

report not_finite(nonfinite_policy policy) {
  std::vector<float> out(2);
  return combine(serial_space{},
                 std::vector<std::vector<float>>{{1, std::numeric_limits<float>::infinity()}, {0.1f, 2}}, out,
                 rules::mean{}, segments{1, 1}, options{.nonfinite = policy});
}

}  // namespace

TEST_CASE("text for people") {
  std::ostringstream out;
  out << example();
  CHECK(out.str() == to_text(example()));
  CHECK(out.str() ==
        "adasum of 2 gradients, 2 segments; orthogonality 0.666667\n"
        "  segment 0: norm 5, orthogonality 1; weight × norm of each: 1 × 3, 1 × 4\n"
        "  segment 1: norm 5, orthogonality 0.5; weight × norm of each: 0.5 × 5, 0.5 × 5\n");
}

TEST_CASE("what was not finite, and who was left out, is in the text") {
  const auto text = to_text(not_finite(nonfinite_policy::exclude));
  CHECK(text.find("  not finite: gradient 0, segment 1\n") != std::string::npos);
  CHECK(text.find("  left out: gradient 0\n") != std::string::npos);
  CHECK(text.find("weight × norm of each: left out, 1 × 2\n") != std::string::npos);
  CHECK(to_text(not_finite(nonfinite_policy::propagate)).find("left out") == std::string::npos);
}

TEST_CASE("where every gradient is left out, the text says that, and speaks of no orthogonality") {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> out(2, 7);
  const report found = combine(serial_space{}, std::vector<std::vector<float>>{{1, inf}, {inf, 2}}, out, rules::mean{},
                               segments{1, 1}, options{.nonfinite = nonfinite_policy::exclude});
  CHECK(out == std::vector<float>{0, 0});
  CHECK(found.all_excluded());
  CHECK(std::isnan(found.orthogonality()));
  CHECK(std::isnan(found.orthogonality(0)));
  CHECK(found.result_norm(0) == 0);
  CHECK(to_text(found) ==
        "mean of 2 gradients, 2 segments\n"
        "  not finite: gradient 1, segment 0\n"
        "  not finite: gradient 0, segment 1\n"
        "  left out: gradient 0\n"
        "  left out: gradient 1\n"
        "  no gradient is left: the result is 0\n");
  CHECK(to_json(found, 0).find("\"orthogonality\":null,\"orthogonalities\":[null,null],\"result_norms\":[0,0]") !=
        std::string::npos);
  CHECK_FALSE(not_finite(nonfinite_policy::exclude).all_excluded());
  CHECK_FALSE(report{}.all_excluded());
}

TEST_CASE("CSV: as many fields in each line as in the header") {
  const auto csv = to_csv(example(), 7);
  CHECK(csv ==
        "7,adasum,,0,0,3,1,5,1\n"
        "7,adasum,,0,1,4,1,5,1\n"
        "7,adasum,,1,0,5,0.5,5,0.5\n"
        "7,adasum,,1,1,5,0.5,5,0.5\n");
  const auto commas = [](const std::string& line) { return std::count(line.begin(), line.end(), ','); };
  CHECK(commas(csv_header()) == commas(csv.substr(0, csv.find('\n'))));
}

TEST_CASE("JSON: one object on one line, null where a number is not finite") {
  CHECK(to_json(example(), 7) ==
        "{\"step\":7,\"rule\":\"adasum\",\"schedule\":\"\",\"wire\":\"same\",\"contributions\":2,\"bytes_sent\":0,"
        "\"recombined_"
        "segments\":0,"
        "\"fallbacks\":0,\"orthogonality\":0.6666666666666666,\"orthogonalities\":[1,0.5],\"result_norms\":[5,5],"
        "\"norms\":[[3,4],[5,5]],"
        "\"weights\":[[1,1],[0.5,0.5]],\"nonfinite\":[],\"excluded\":[]}\n");
  const auto json = to_json(not_finite(nonfinite_policy::exclude), 0);
  CHECK(json.find("\"norms\":[[0,0.1") != std::string::npos);
  CHECK(json.find("[null,2]") != std::string::npos);
  CHECK(json.find("\"nonfinite\":[{\"contribution\":0,\"segment\":1}],\"excluded\":[0]") != std::string::npos);
}

TEST_CASE("each key of the JSON object is on the page of reports, and the arrays are nested as it says") {
  std::ifstream page(ADASUM_REPORTS_PAGE);
  REQUIRE(page);
  const std::string guide{std::istreambuf_iterator<char>(page), {}};
  std::vector<float> out(3);
  const auto json = to_json(combine(serial_space{}, std::vector<std::vector<float>>{{1, 2, 3}, {4, 5, 6}}, out,
                                    rules::mean{}, segments{1, 1, 1}),
                            0);
  int keys = 0;
  for (auto at = json.find("\":"); at != std::string::npos; at = json.find("\":", at + 1), ++keys) {
    const auto begin = json.rfind('"', at - 1) + 1;
    CHECK_MESSAGE(guide.find("`" + json.substr(begin, at - begin) + "`") != std::string::npos, json.substr(begin));
  }
  CHECK(keys == 15);
  CHECK(guide.find("`weights[segment][rank]`") != std::string::npos);
  CHECK(json.find("\"weights\":[[0.5,0.5],[0.5,0.5],[0.5,0.5]]") !=
        std::string::npos);  // three segments, two gradients
  CHECK(json.find("\"norms\":[[1,4],[2,5],[3,6]]") != std::string::npos);
}

namespace {

struct odd_name {
  static constexpr std::string_view name = "my \"rule\", v\\2\nnew";
  pair_weights operator()(const pair_gram&) const { return {1, 1}; }
};

}  // namespace

TEST_CASE("a name with quotes, commas and line breaks stays one field") {
  std::vector<float> a{3}, b{4}, out(1);
  const report r = combine(serial_space{}, std::vector<std::vector<float>>{a, b}, out, odd_name{});
  CHECK(to_json(r, 1).find("\"rule\":\"my \\\"rule\\\", v\\\\2\\u000anew\",\"schedule\"") != std::string::npos);
  const auto json = to_json(r, 1);
  CHECK(std::count(json.begin(), json.end(), '\n') == 1);
  CHECK(to_csv(r, 1).find("1,\"my \"\"rule\"\", v\\2\nnew\",,0,0,3") == 0);
}

TEST_CASE("an empty report is text too") {
  CHECK(to_text(report{}) == " of 0 gradients, 0 segments\n");
  CHECK(to_csv(report{}, 0).empty());
}

}  // namespace test_of_report_text
