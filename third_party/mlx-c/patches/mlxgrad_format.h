// Copyright (c) The mlxgrad authors. MIT license.
//
// A replacement for std::format with "{}" fields, the only form that mlx-c uses. GCC 12 lacks <format>, and five error
// messages do not justify a dependency such as fmt.

#pragma once

#include <sstream>
#include <string>
#include <string_view>

namespace mlxgrad {

template <typename... Args>
std::string format(std::string_view text, const Args&... args) {
  std::ostringstream out;
  // Each argument replaces the next field. Arguments without a field are appended.
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
