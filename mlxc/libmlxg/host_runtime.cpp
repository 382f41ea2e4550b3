// The C interface of the host executor.
#include "runtime.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host_job.h"

// libmlxg is compiled as a few large units, so this file has no using directive.
namespace mlxg {
extern "C" {

int mlxg_host_load(const char* path, mlxg_host_library* out, char* err, size_t errlen) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* message = dlerror();
    snprintf(err, errlen, "%s", message ? message : "dlopen failed");
    return -1;
  }
  const auto* e = static_cast<const struct entry*>(dlsym(handle, "mlxgrad_entry"));
  const auto* m = static_cast<const struct module*>(dlsym(handle, "mlxgrad_module"));
  if (!e || !m) {
    snprintf(err, errlen, "not a shader library");
    dlclose(handle);
    return -1;
  }
  *out = {handle, e, m, e->name, e->buffers, *m->threadgroup_memory, *m->uses_fibers};
  return 0;
}

void* mlxg_host_launch_new(const mlxg_host_launch_config* config) {
  auto* l = static_cast<launch*>(calloc(1, sizeof(launch)));
  if (!l) {
    return nullptr;
  }
  l->entry = static_cast<const struct entry*>(config->entry);
  l->module = static_cast<const struct module*>(config->module);
  l->groups = 1;
  l->threads = 1;
  for (int d = 0; d < 3; ++d) {
    l->geo.grid[d] = config->grid[d];
    l->geo.threadgroup[d] = minimum(config->threadgroup[d], config->grid[d]);
    l->geo.groups[d] = (config->grid[d] - 1) / l->geo.threadgroup[d] + 1;
    l->groups *= l->geo.groups[d];
    l->threads *= l->geo.threadgroup[d];
  }
  l->fibers = *l->module->uses_fibers != 0;
  l->inputs = config->inputs;
  l->outputs = config->outputs;
  memcpy(l->metadata, config->metadata, sizeof l->metadata);
  l->workers = config->workers ? config->workers : 1;
  return l;
}

int mlxg_host_launch_prepare(void* context, char* err, size_t errlen) {
  const auto* l = static_cast<const launch*>(context);
  if (!workspace_reserve(stacks(l))) {
    snprintf(
        err, errlen, "kernel %s: no memory for the stacks of a threadgroup of %u threads", l->entry->name, l->threads);
    return -1;
  }
  start_workers(uint32_t(l->groups < l->workers ? l->groups : l->workers) - 1);
  return 0;
}

void mlxg_host_launch_run(void* context, const mlxg_view* inputs, const mlxg_view* outputs) {
  const auto* l = static_cast<const launch*>(context);
  job j;
  j.l = l;
  j.helpers = 0;
  j.lacks_stacks = false;
  j.next = nullptr;
  j.lock = PTHREAD_MUTEX_INITIALIZER;
  uint32_t b = 0;
  for (uint32_t i = 0; i < l->inputs; ++i) {
    j.buffers[b++] = inputs[i].data;
    if (l->metadata[i] & 1) {
      j.buffers[b++] = const_cast<int32_t*>(inputs[i].shape);
    }
    if (l->metadata[i] & 2) {
      j.buffers[b++] = const_cast<int64_t*>(inputs[i].strides);
    }
    if (l->metadata[i] & 4) {
      j.ndim[b] = inputs[i].ndim;
      j.buffers[b] = &j.ndim[b];
      ++b;
    }
  }
  for (uint32_t i = 0; i < l->outputs; ++i) {
    j.buffers[b++] = outputs[i].data;
  }

  // 16 chunks for each worker balance the load, with little contention on the counter.
  j.chunk = l->groups / (uint64_t(l->workers) * 16);
  if (j.chunk == 0) {
    j.chunk = 1;
  }
  const uint64_t chunks = (l->groups + j.chunk - 1) / j.chunk;
  j.max_helpers = l->workers - 1 < chunks - 1 ? l->workers - 1 : uint32_t(chunks - 1);
  j.share_count = minimum(j.max_helpers + 1, max_shares);
  for (uint32_t i = 0; i < j.share_count; ++i) {
    j.shares[i] = {l->groups * i / j.share_count, l->groups * (i + 1) / j.share_count, nullptr};
  }

  sigset_t old;
  block_signals(&old);
  const normal_arithmetic arithmetic;
  workspace_release(run_job(workspace_acquire(stacks(l)), &j));
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

void mlxg_host_launch_release(void* context) {
  free(context);
}

}  // extern "C"
}  // namespace mlxg
