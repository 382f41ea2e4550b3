// Export of functions to files and traces, import, and printing of graphs.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mlx/export.h"
#include "mlx/mlx.h"
#include "mlx/primitives.h"
#include "mlxg_evaluation.h"
#include "mlxg_internal.h"
#include "mlxg_io.h"
#include "mlxg_primitive.h"

namespace mx = mlx::core;

namespace {

// custom_transform_remover rebuilds graphs without nodes that MLX cannot serialize. Contiguous becomes a Concatenate of
// one operand, which copies it too. CustomTransforms nodes and forwarders, which functions with custom gradients
// create, are left out. The outputs of such a node equal some of its inputs, so its users can read these instead. A
// node with a wrapper gets the wrapped primitive, because MLX finds a primitive's type by its name. Existing nodes stay
// unchanged because the caller may still take their gradients.
class custom_transform_remover {
 public:
  std::vector<mx::array> operator()(const std::vector<mx::array>& outputs) {
    std::vector<mx::array> result;
    for (auto& o : outputs) {
      visit(o);
      result.push_back(done_.at(o.id()));
    }
    return result;
  }

 private:
  // Post-order without recursion, since graphs are deep.
  void visit(const mx::array& root) {
    std::vector<mx::array> todo{root};
    while (!todo.empty()) {
      mx::array a = todo.back();
      if (done_.count(a.id())) {
        todo.pop_back();
        continue;
      }
      bool ready = true;
      for (auto& in : sources(a)) {
        if (!done_.count(in.id())) {
          todo.push_back(in);
          ready = false;
        }
      }
      if (ready) {
        finish(a);
        todo.pop_back();
      }
    }
  }

  // sources returns the operands of a in the rebuilt graph.
  static std::vector<mx::array> sources(const mx::array& a) {
    if (auto in = mlxg::forwarded(a)) {
      return {*in};
    }
    return unwrapped(a).second;
  }

  // unwrapped returns the primitive of a node, or null, and its inputs, both without wrappers.
  static std::pair<std::shared_ptr<mx::Primitive>, mlxg::arrays> unwrapped(const mx::array& a) {
    auto primitive = a.has_primitive() ? a.primitive_ptr() : nullptr;
    auto inputs = a.inputs();
    mlxg::unwrap(primitive, inputs);
    return {std::move(primitive), std::move(inputs)};
  }

  static bool is_captured(const mx::array& a) {
    auto own = dynamic_cast<mlxg::opaque*>(unwrapped(a).first.get());
    return own && own->is_captured();
  }

  void finish(const mx::array& a) {
    if (auto in = mlxg::forwarded(a)) {
      set(a, done_.at(in->id()));
      return;
    }
    if (is_captured(a)) {
      // Export the elements instead of a reference to a file or to compiled code.
      mlxg::arrays one{a};
      mlxg::repair(one);
      mlxg::evaluation::plan(one, true)->run(one);
      mlxg::restore_signal_stacks();
    }
    bool constant = !a.has_primitive() && a.status() != mx::array::Status::unscheduled;
    if (constant && !a.flags().row_contiguous) {
      // MLX writes nbytes of memory from the first element on, whatever the strides.
      auto dense = mx::contiguous(a, false, *static_cast<mx::Stream*>(mlxg_device_stream(0)));
      mx::eval({dense});
      set(a, dense);
      return;
    }
    auto [primitive, inputs] = unwrapped(a);
    if (primitive && std::strcmp(primitive->name(), "Contiguous") == 0) {
      auto none = mx::zeros({0});
      primitive = mx::concatenate({none, none}, 0, primitive->stream()).primitive_ptr();
    }
    bool changed = a.has_primitive() && primitive != a.primitive_ptr();
    for (auto& in : inputs) {
      auto& rebuilt = done_.at(in.id());
      changed = changed || rebuilt.id() != in.id();
      in = rebuilt;
    }
    if (!changed) {
      set(a, a);
      return;
    }
    auto outputs = a.outputs();
    std::vector<mx::Shape> shapes;
    std::vector<mx::Dtype> dtypes;
    for (auto& o : outputs) {
      shapes.push_back(o.shape());
      dtypes.push_back(o.dtype());
    }
    auto made = mx::array::make_arrays(std::move(shapes), dtypes, primitive, inputs);
    for (size_t i = 0; i < outputs.size(); i++) {
      set(outputs[i], made[i]);
    }
  }

  void set(const mx::array& from, const mx::array& to) {
    kept_.push_back(from);  // keeps the id from being reused
    done_.emplace(from.id(), to);
  }

  std::unordered_map<std::uintptr_t, mx::array> done_;
  std::vector<mx::array> kept_;
};

thread_local int exports = 0;

// build_for_export calls f and returns the outputs of the graph to export. It appends the sibling cycles of the graph
// to cycles.
mlxg::arrays build_for_export(mlxg::arrays& cycles, auto&& f) {
  struct count {
    count() { exports++; }
    ~count() { exports--; }
  } counted;
  auto results = custom_transform_remover{}(f());
  auto found = mlxg::sibling_cycles(results);
  cycles.insert(cycles.end(), found.begin(), found.end());
  return results;
}

// exported returns the Go function with this id as a C++ function for MLX's exporter. cycles must outlive the export.
mlxg::function exported(uintptr_t id, mlxg::arrays& cycles) {
  return [f = mlxg::function_of(id), &cycles](const mlxg::arrays& args) {
    return build_for_export(cycles, [&] { return f(args); });
  };
}

// export_one writes one trace of a function. An mlx_closure is a pointer to a std::function.
char* export_one(mlxg::function f, const char* file, const uintptr_t* inputs, size_t n, bool shapeless) {
  mlx_vector_array args = mlxg::vector_of(inputs, n);
  int rc = mlx_export_function(file, mlx_closure{&f}, args, shapeless);
  mlx_vector_array_free(args);
  return mlxg_end_status(rc);
}

// shapeless_export writes a shapeless trace and checks that the graph does not depend on the shapes.
class shapeless_export {
 public:
  explicit shapeless_export(uintptr_t id) : f_(exported(id, cycles_)) {}

  char* write(const char* file, const uintptr_t* inputs, size_t n) {
    auto traced = [this](const mlxg::arrays& args) {
      auto results = f_(args);
      mlxg::require_shapeless(results, args);
      last_ = {args, results};
      return results;
    };
    if (auto err = export_one(traced, file, inputs, n, true)) {
      return err;
    }
    try {
      check(mlxg::arrays_of(inputs, n));
    } catch (std::exception& e) {
      return mlxg::error_text(e.what());
    }
    return nullptr;
  }

 private:
  struct graph {
    mlxg::arrays args, results;
  };

  // check traces the function again with each size multiplied in turn. A function that fails accepts only the first
  // size.
  void check(const mlxg::arrays& inputs) {
    std::set<int> sizes;
    for (auto& in : inputs) {
      sizes.insert(in.shape().begin(), in.shape().end());
    }
    auto first = last_;
    for (int size : sizes) {
      if (size > 1 << 20) {
        continue;
      }
      mlxg::arrays others;
      for (auto& in : inputs) {
        auto shape = in.shape();
        std::replace(shape.begin(), shape.end(), size, 8 * size);
        others.push_back(mx::zeros(shape, in.dtype()));
      }
      bool failed = true;
      auto traced = [&](const mlxg::arrays& args) {
        auto results = f_(args);
        failed = false;
        last_ = {args, results};
        return results;
      };
      try {
        mx::export_function([](const mx::ExportCallbackInput&) {}, traced, others, true);
      } catch (std::exception&) {
        if (!failed) {
          throw;
        }
        continue;
      }
      mlxg::refuse_difference(mlxg::difference(first.results, last_.results, first.args, last_.args));
    }
  }

  mlxg::arrays cycles_;  // see sibling_cycles
  mlxg::function f_;
  graph last_;
};

using named_arrays = std::unordered_map<std::string, mx::array>;
using named_function = std::function<mlxg::arrays(const mlxg::arrays&, const named_arrays&)>;

// exported_named is exported for a function with named arguments. The Go function receives all arguments in one list.
// The named arguments come last, in the order of names.
named_function exported_named(uintptr_t id, std::vector<std::string> names, mlxg::arrays& cycles) {
  return [f = mlxg::function_of(id), names, &cycles](const mlxg::arrays& args, const named_arrays& named) {
    auto all = args;
    for (auto& name : names) {
      all.push_back(named.at(name));
    }
    return build_for_export(cycles, [&] { return f(all); });
  };
}

// map_of returns a map from names to arrays. The caller frees it.
mlx_map_string_to_array map_of(const uintptr_t* arrays, const char** names, size_t n) {
  mlx_map_string_to_array map = mlx_map_string_to_array_new();
  for (size_t i = 0; i < n; i++) {
    mlx_map_string_to_array_insert(map, names[i], mlx_array{reinterpret_cast<void*>(arrays[i])});
  }
  return map;
}

// move_to_device_streams moves the nodes of an imported graph, from outputs to args, to the process's stream of their
// device. MLX gives them the stream indices in the file. This process may have no such stream, or the stream may be
// bound to a thread.
void move_to_device_streams(const mlxg::arrays& outputs, const mlxg::arrays& args) {
  mlxg::each_node(outputs, args, [](auto& a) {
    auto& stream = const_cast<mx::Stream&>(a.primitive().stream());
    void* own = mlxg_device_stream(stream.device == mx::Device::gpu);
    if (own) {
      stream = *static_cast<mx::Stream*>(own);
    }
  });
}

// imported is a function from a file.
struct imported {
  mlx_imported_function f;
  bool shapeless;
  ~imported() { mlx_imported_function_free(f); }
};

// is_shapeless reads the header of a file that MLX has read: its version as a size and text, the number of traces in 32
// bits, and a byte that is 1 for a shapeless trace. MLX has no getter for it.
bool is_shapeless(const char* file) {
  std::ifstream in(file, std::ios::binary);
  uint64_t version = 0;
  in.read(reinterpret_cast<char*>(&version), sizeof(version));
  in.seekg(static_cast<std::streamoff>(version) + 4, std::ios::cur);
  return in.get() == 1;
}

}  // namespace

bool mlxg::exporting() {
  return exports > 0;
}

extern "C" {

char* mlxg_export(uintptr_t id, const char* file, const uintptr_t* inputs, size_t n) {
  mlxg::arrays cycles;
  return export_one(exported(id, cycles), file, inputs, n, false);
}

char* mlxg_export_shapeless(uintptr_t id, const char* file, const uintptr_t* inputs, size_t n) {
  return shapeless_export(id).write(file, inputs, n);
}

char* mlxg_export_traces(uintptr_t id, const char* file, const uintptr_t* inputs, const size_t* sizes, size_t n) {
  mlxg::arrays cycles;
  auto f = exported(id, cycles);
  mlx_function_exporter exporter = mlx_function_exporter_new(file, mlx_closure{&f}, false);
  if (!exporter.ctx) {
    return mlxg::take_error();
  }
  int rc = 0;
  for (size_t i = 0; i < n && rc == 0; i++) {
    mlx_vector_array args = mlxg::vector_of(inputs, sizes[i]);
    rc = mlx_function_exporter_apply(exporter, args);
    mlx_vector_array_free(args);
    inputs += sizes[i];
  }
  char* err = mlxg_end_status(rc);
  mlx_function_exporter_free(exporter);
  return err;
}

char* mlxg_export_named(
    uintptr_t id, const char* file, const uintptr_t* inputs, size_t n, const char** names, size_t n_names) {
  mlxg::arrays cycles;
  auto f = exported_named(id, {names, names + n_names}, cycles);
  size_t plain = n - n_names;
  mlx_vector_array args = mlxg::vector_of(inputs, plain);
  mlx_map_string_to_array named = map_of(inputs + plain, names, n_names);
  int rc = mlx_export_function_kwargs(file, mlx_closure_kwargs{&f}, args, named, false);
  mlx_map_string_to_array_free(named);
  mlx_vector_array_free(args);
  return mlxg_end_status(rc);
}

char* mlxg_import(const char* file, void** result) {
  *result = nullptr;
  char* err = nullptr;
  // MLX creates a stream at every import. It belongs to the thread and ends with it, so the import runs on a thread of
  // its own. It does not take the graph lock, which the caller holds inside of a transform. The constants of the file
  // are evaluated on the default stream.
  try {
    std::thread([&] {
      mlxg::use_device_streams();
      mlx_imported_function f = mlx_imported_function_new(file);
      if (f.ctx) {
        *result = new imported{f, is_shapeless(file)};
      } else {
        err = mlxg::take_error();
      }
    }).join();
  } catch (std::exception& e) {  // the thread could not be started
    err = mlxg::error_text(e.what());
  }
  return err;
}

void mlxg_import_free(void* f) {
  mlxg::guard g;
  delete static_cast<imported*>(f);
}

mlxg_results mlxg_import_call(void* f, const uintptr_t* args, size_t n, const char** names, size_t n_names) {
  mlxg::guard g;
  auto fun = static_cast<imported*>(f);
  size_t plain = n - n_names;
  mlx_vector_array out = mlx_vector_array_new();
  mlx_vector_array in = mlxg::vector_of(args, plain);
  int rc;
  if (n_names == 0) {
    rc = mlx_imported_function_apply(&out, fun->f, in);
  } else {
    mlx_map_string_to_array named = map_of(args + plain, names, n_names);
    rc = mlx_imported_function_apply_kwargs(&out, fun->f, in, named);
    mlx_map_string_to_array_free(named);
  }
  mlx_vector_array_free(in);
  if (rc == 0) {
    auto& results = *static_cast<mlxg::arrays*>(out.ctx);
    auto arguments = mlxg::arrays_of(args, n);
    move_to_device_streams(results, arguments);
    try {
      if (fun->shapeless) {
        mlxg::require_shapeless(results, arguments);
      }
    } catch (std::exception& e) {
      mlx_vector_array_free(out);
      return mlxg::no_results(mlxg::error_text(e.what()));
    }
  }
  return mlxg_end_vector(rc, out);
}

char* mlxg_graph_text(
    bool dot,
    const uintptr_t* outputs,
    size_t n,
    const uintptr_t* named,
    const char** names,
    size_t n_names,
    char** text,
    size_t* size) {
  mlxg::guard g;
  *text = nullptr;
  FILE* file = open_memstream(text, size);
  if (!file) {
    return mlxg::error_text("out of memory");
  }
  mlx_node_namer namer = mlx_node_namer_new();
  for (size_t i = 0; i < n_names; i++) {
    mlx_node_namer_set_name(namer, mlx_array{reinterpret_cast<void*>(named[i])}, names[i]);
  }
  mlx_vector_array out = mlxg::vector_of(outputs, n);
  int rc = (dot ? mlx_export_to_dot : mlx_print_graph)(file, namer, out);
  char* err = mlxg_end_status(rc);
  mlx_vector_array_free(out);
  mlx_node_namer_free(namer);
  if (fclose(file) != 0 && !err) {
    err = mlxg::error_text("out of memory");
  }
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

char* mlxg_trace(uintptr_t id, const uintptr_t* inputs, size_t n, mlxg_node** nodes, size_t* n_nodes) {
  *nodes = nullptr;
  *n_nodes = 0;
  std::vector<std::pair<std::string, std::vector<std::string>>> found;
  mlxg::arrays cycles;
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
        exported(id, cycles), mlxg::arrays_of(inputs, n));
  } catch (std::exception& e) {
    err = mlxg::error_text(e.what());
  }
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

}  // extern "C"
