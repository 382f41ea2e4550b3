// Export of functions, to a file and, as a trace, to memory.
#include <cstring>
#include <string>
#include <unordered_set>

#include "mlx/export.h"
#include "mlx/mlx.h"
#include "mlx/primitives.h"
#include "mlxg_internal.h"

namespace mx = mlx::core;

namespace {

using fun_t = std::function<std::vector<mx::array>(const std::vector<mx::array>&)>;

// A function with a gradient of its own is a CustomTransforms node, which MLX
// cannot serialize. Its last inputs are the outputs of the function itself, so what
// reads an output of the node can read those instead.
mx::array inner(mx::array a) {
  while (a.has_primitive() && std::strcmp(a.primitive().name(), "CustomTransforms") == 0) {
    size_t n = a.siblings().size() + 1;
    a = mx::array(a.inputs()[a.inputs().size() - n + a.sibling_position()]);
  }
  return a;
}

// strip takes the CustomTransforms nodes out of the graph of the outputs.
std::vector<mx::array> strip(std::vector<mx::array> outputs) {
  std::unordered_set<std::uintptr_t> seen;
  std::vector<mx::array> todo;
  for (auto& o : outputs) {
    o = inner(o);
    todo.push_back(o);
  }
  while (!todo.empty()) {
    mx::array a = std::move(todo.back());
    todo.pop_back();
    if (!seen.insert(a.id()).second) {
      continue;
    }
    for (auto& in : a.inputs()) {
      in = inner(in);
      todo.push_back(in);
    }
    for (auto& s : a.siblings()) {
      todo.push_back(s);
    }
  }
  return outputs;
}

fun_t stripped(mlx_closure f) {
  return [fun = *static_cast<fun_t*>(f.ctx)](const std::vector<mx::array>& args) {
    return strip(fun(args));
  };
}

} // namespace

extern "C" {

char* mlxg_export(uintptr_t id, const char* file, void** inputs, size_t n) {
  mlx_closure f = mlxg_closure_new(id);
  char* err = nullptr;
  try {
    mx::export_function(file, stripped(f), mlxg::arrays_of(inputs, n));
  } catch (std::exception& e) {
    err = mlxg::error_text(e.what());
  }
  mlx_closure_free(f);
  return err;
}

void mlxg_nodes_free(mlxg_node* nodes, size_t n) {
  for (size_t i = 0; i < n; i++) {
    for (size_t j = 0; j < nodes[i].n_strings; j++) {
      free(nodes[i].strings[j]);
    }
    free(nodes[i].strings);
    free(nodes[i].name);
  }
  free(nodes);
}

char* mlxg_trace(
    uintptr_t id, void** inputs, size_t n, mlxg_node** nodes, size_t* n_nodes) {
  *nodes = nullptr;
  *n_nodes = 0;
  mlx_closure f = mlxg_closure_new(id);
  std::vector<std::pair<std::string, std::vector<std::string>>> found;
  char* err = nullptr;
  try {
    mx::export_function(
        [&](const mx::ExportCallbackInput& item) {
          auto type = item.find("type");
          if (type == item.end() || std::get<std::string>(type->second) != "primitive") {
            return;
          }
          std::vector<std::string> strings;
          for (auto& [key, value] : item) {
            auto* state = std::get_if<std::vector<mx::StateT>>(&value);
            if (!state) {
              continue;
            }
            for (auto& x : *state) {
              if (auto* s = std::get_if<std::string>(&x)) {
                strings.push_back(*s);
              }
            }
          }
          found.emplace_back(std::get<std::string>(item.at("name")), std::move(strings));
        },
        stripped(f),
        mlxg::arrays_of(inputs, n));
  } catch (std::exception& e) {
    err = mlxg::error_text(e.what());
  }
  mlx_closure_free(f);
  if (err) {
    return err;
  }
  *nodes = static_cast<mlxg_node*>(calloc(found.size() ? found.size() : 1, sizeof(mlxg_node)));
  *n_nodes = found.size();
  for (size_t i = 0; i < found.size(); i++) {
    auto& [name, strings] = found[i];
    auto& node = (*nodes)[i];
    node.name = strdup(name.c_str());
    node.n_strings = strings.size();
    node.strings = static_cast<char**>(calloc(strings.size() ? strings.size() : 1, sizeof(char*)));
    for (size_t j = 0; j < strings.size(); j++) {
      node.strings[j] = strdup(strings[j].c_str());
    }
  }
  return nullptr;
}

} // extern "C"
