// Copyright (c) The mlxgrad authors. MIT licence.
//
// A stand-in for the one form of std::format that mlx-c uses: "{}" fields, filled
// in order. GCC 12 ships C++20 without <format>, and a package such as fmt would
// be one more thing to install for five error messages.

#pragma once

#include <sstream>
#include <string>
#include <string_view>

namespace mlxgrad {

template <typename... Args>
std::string format(std::string_view text, const Args&... args) {
  std::ostringstream out;
  // Each argument takes the text up to the next field; text without a field left
  // is written once, at the end, so that a missing field loses no argument.
  auto put = [&](const auto& arg) {
    const auto field = text.find("{}");
    if (field == std::string_view::npos) {
      out << ' ' << arg;
      return;
    }
    out << text.substr(0, field) << arg;
    text.remove_prefix(field + 2);
  };
  (put(args), ...);
  out << text;
  return out.str();
}

}  // namespace mlxgrad
