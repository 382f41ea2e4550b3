// Export tracing: what MLX would write into an exported function, in memory.
#include <cstring>
#include <string>

#include "mlx/export.h"
#include "mlx/mlx.h"
#include "mlxg_internal.h"

namespace mx = mlx::core;

extern "C" {

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
    auto& fun = *static_cast<std::function<std::vector<mx::array>(const std::vector<mx::array>&)>*>(f.ctx);
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
        fun,
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
