// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reports with any names and numbers: the JSON is JSON, on one line; the CSV has one record for each gradient and segment,
// of eleven fields.
#include <string>
#include <string_view>

#include <adasum/core/report_writer.hpp>
#include <adasum/report_text.hpp>

#include "input.hpp"

namespace {

using adasum::fuzz::require;

/// Reads JSON by its grammar (RFC 8259), and keeps nothing.
class json_reader {
 public:
  explicit json_reader(std::string_view text) : left_(text) {}

  void read_all() {
    value();
    require(left_.empty(), "nothing follows the JSON");
  }

 private:
  char next() const { return left_.empty() ? '\0' : left_.front(); }
  bool take(char c) {
    if (next() != c) return false;
    left_.remove_prefix(1);
    return true;
  }
  void expect(char c) { require(take(c), "JSON's grammar"); }

  void value() {
    if (take('{')) {
      if (take('}')) return;
      do {
        string();
        expect(':');
        value();
      } while (take(','));
      return expect('}');
    }
    if (take('[')) {
      if (take(']')) return;
      do value();
      while (take(','));
      return expect(']');
    }
    if (next() == '"') return string();
    if (next() == 'n') {
      require(left_.starts_with("null"), "JSON's grammar");
      left_.remove_prefix(4);
      return;
    }
    number();
  }
  void string() {
    expect('"');
    while (!take('"')) {
      require(static_cast<unsigned char>(next()) >= 0x20, "control characters in strings are escaped");
      if (!take('\\')) {
        left_.remove_prefix(1);
      } else if (take('u')) {
        for (int i = 0; i < 4; ++i) {
          require(std::string_view("0123456789abcdefABCDEF").find(next()) != std::string_view::npos,
                  "\\u and four digits");
          left_.remove_prefix(1);
        }
      } else {
        require(std::string_view("\"\\/bfnrt").find(next()) != std::string_view::npos, "what follows a backslash");
        left_.remove_prefix(1);
      }
    }
  }
  void digits() {
    require(next() >= '0' && next() <= '9', "JSON's grammar");
    while (next() >= '0' && next() <= '9') left_.remove_prefix(1);
  }
  void number() {
    take('-');
    if (!take('0')) digits();
    if (take('.')) digits();
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      digits();
    }
  }

  std::string_view left_;
};

/// Records and fields of CSV by RFC 4180. visit(number of fields) for each record.
template <class Visitor>
void read_csv(std::string_view text, const Visitor& visit) {
  std::size_t fields = 1;
  bool quoted = false, at_start = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') continue;
      if (i + 1 < text.size() && text[i + 1] == '"') {
        ++i;
        continue;
      }
      quoted = false;
    } else if (c == '"') {
      require(at_start, "quotes begin a field");
      quoted = true;
    } else if (c == ',') {
      ++fields;
      at_start = true;
      continue;
    } else if (c == '\n') {
      visit(fields);
      fields = 1;
      at_start = true;
      continue;
    }
    at_start = false;
  }
  require(!quoted && fields == 1, "the last record ends");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  adasum::fuzz::input in(data, size);
  const auto rule = in.text(), schedule = in.text();
  const auto contributions = in.up_to(4), segments = in.up_to(4);
  adasum::detail::report_writer writer(contributions, segments, rule, schedule);
  for (std::size_t i = 0; i < contributions; ++i)
    for (auto& entry : writer.row(i)) entry = {in.number<double>(), in.number<double>()};
  for (auto& norm : writer.result_norms()) norm = in.number<double>();
  writer.set_measured(in.flag());
  if (contributions > 0 && in.flag()) writer.exclude(static_cast<int>(in.up_to(contributions - 1)));
  writer.set_bytes_sent(in.number<std::size_t>());

  const auto& report = writer.get();
  const auto step = in.number<long long>();
  const auto json = adasum::to_json(report, step);
  require(json.ends_with('\n') && json.find('\n') == json.size() - 1, "JSON is on one line");
  json_reader(std::string_view(json).substr(0, json.size() - 1)).read_all();
  std::size_t records = 0;
  read_csv(adasum::to_csv(report, step), [&](std::size_t fields) {
    ++records;
    require(fields == 9, "a record has nine fields");
  });
  require(records == contributions * segments, "a record for each gradient and segment");
  adasum::to_text(report);
  return 0;
}
