#include "host_workspace.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

namespace mlxg {
namespace {

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t workspace_returned = PTHREAD_COND_INITIALIZER;
workspace* free_list = nullptr;
uint32_t guaranteed = 0;  // stacks of the largest workspace that workspace_reserve made
uint32_t guarded = 0;     // stacks of all workspaces
uint32_t in_use = 0;      // workspaces that are in no list
uint32_t reserving = 0;   // threads in workspace_reserve that wait for the stacks of workspaces in use

// The maximum number of stacks in the process: 16 workspaces for threadgroups of 1024 threads. A guarded stack is two
// mappings. Linux allows a process 65530 mappings by default, and Go and MLX need some. At the limit a launch runs on
// fewer workers.
constexpr uint32_t max_guarded = 16 * max_threads;

size_t page_size() {
  static const size_t size = size_t(sysconf(_SC_PAGESIZE));
  return size;
}

// Returns the offset of a fiber's frames in its stack. Without it the frames of all fibers would map to a few sets of
// the first-level cache.
uintptr_t cache_color(uint32_t thread) {
  return (thread * 192) & 4095;
}

// Reserves the addresses of a workspace, without stacks. Returns NULL if the system refuses.
workspace* workspace_new() {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#ifdef MAP_NORESERVE
  flags |= MAP_NORESERVE;
#endif
  const size_t span = 2 * workspace_size;
  char* raw = static_cast<char*>(mmap(nullptr, span, PROT_NONE, flags, -1, 0));
  if (raw == MAP_FAILED) {
    return nullptr;
  }
  char* base = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(raw) + workspace_size - 1) & ~(workspace_size - 1));
  if (base > raw) {
    munmap(raw, size_t(base - raw));
  }
  char* end = base + workspace_size;
  if (end < raw + span) {
    munmap(end, size_t(raw + span - end));
  }
  if (mprotect(base, (sizeof(workspace) + page_size() - 1) & ~(page_size() - 1), PROT_READ | PROT_WRITE) != 0) {
    munmap(base, workspace_size);
    return nullptr;
  }
  return reinterpret_cast<workspace*>(base);  // fresh memory is zero
}

// Frees a workspace that is in no list. The caller holds the lock.
void workspace_free(workspace* w) {
  guarded -= w->stacks;
  munmap(w, workspace_size);
}

// Allocates stacks for the first `count` fibers. Returns false if there is no memory or the process has too many
// stacks. The caller holds the lock.
bool workspace_grow(workspace* w, uint32_t count) {
  if (w->stacks >= count) {
    return true;
  }
  if (guarded + (count - w->stacks) > max_guarded) {
    return false;
  }
  for (uint32_t i = w->stacks; i < count; ++i) {
    char* low = reinterpret_cast<char*>(w) + stacks_offset + i * stack_size;
    if (mprotect(low + page_size(), stack_size - page_size(), PROT_READ | PROT_WRITE) != 0) {
      return false;
    }
    // A function expects the stack pointer as after a call: on x86-64, 8 below a multiple of 16, at a return address.
    uintptr_t top = reinterpret_cast<uintptr_t>(low) + stack_size - 64 - cache_color(i);
#if defined(__x86_64__)
    top -= 8;
    *reinterpret_cast<uintptr_t*>(top) = 0;
#endif
    w->c.fiber[i] = {reinterpret_cast<void*>(top), nullptr, reinterpret_cast<void*>(&mlxg_host_fiber_main), nullptr};
    w->stacks = i + 1;
    ++guarded;
  }
  return true;
}

// Returns a workspace with at least `count` stacks that is in no list, or NULL. The caller holds the lock.
workspace* idle_workspace(uint32_t count) {
  if (reserving > 0 && in_use > 0) {
    return nullptr;  // otherwise new launches could keep workspace_reserve waiting
  }
  const uint32_t least[] = {count, 0};  // a workspace grows only if no other one has enough stacks
  for (const uint32_t enough : least) {
    for (workspace** at = &free_list; *at; at = &(*at)->next) {
      workspace* w = *at;
      if (w->stacks >= enough && workspace_grow(w, count)) {
        *at = w->next;
        ++in_use;
        return w;
      }
    }
  }
  if (guarded + count > max_guarded) {
    return nullptr;
  }
  workspace* w = workspace_new();
  if (w && !workspace_grow(w, count)) {
    workspace_free(w);
    return nullptr;
  }
  in_use += w != nullptr;
  return w;
}

// Makes an idle workspace with `count` stacks, and frees other idle ones if necessary. Returns false if there is no
// memory or the stacks in use leave too few. The caller holds the lock.
bool grow_idle_workspace(uint32_t count) {
  workspace** most = &free_list;
  for (workspace** at = &free_list; *at; at = &(*at)->next) {
    if ((*at)->stacks > (*most)->stacks) {
      most = at;
    }
  }
  workspace* w = *most;
  if (w) {
    *most = w->next;
  } else {
    w = workspace_new();
  }
  if (!w) {
    return false;
  }
  bool grown = workspace_grow(w, count);
  while (!grown && free_list) {  // the stacks of idle workspaces count for the limit
    workspace* idle = free_list;
    free_list = idle->next;
    workspace_free(idle);
    grown = workspace_grow(w, count);
  }
  w->next = free_list;
  free_list = w;
  return grown;
}

}  // namespace

bool workspace_reserve(uint32_t count) {
  pthread_mutex_lock(&lock);
  while (guaranteed < count) {
    if (grow_idle_workspace(count)) {
      guaranteed = count;
    } else if (in_use > 0 && guarded + count > max_guarded) {  // running launches have the stacks
      ++reserving;
      pthread_cond_wait(&workspace_returned, &lock);
      --reserving;
    } else {
      break;
    }
  }
  pthread_cond_broadcast(&workspace_returned);  // for threads that have waited meanwhile
  const bool ok = guaranteed >= count;
  pthread_mutex_unlock(&lock);
  return ok;
}

workspace* workspace_try_acquire(uint32_t count) {
  pthread_mutex_lock(&lock);
  workspace* w = idle_workspace(count);
  pthread_mutex_unlock(&lock);
  return w;
}

workspace* workspace_acquire(uint32_t count) {
  pthread_mutex_lock(&lock);
  workspace* w;
  while (!(w = idle_workspace(count))) {
    // Other threads use all workspaces: wait for one.
    pthread_cond_wait(&workspace_returned, &lock);
  }
  pthread_mutex_unlock(&lock);
  return w;
}

void workspace_release(workspace* w) {
  pthread_mutex_lock(&lock);
  --in_use;
  w->next = free_list;
  free_list = w;
  pthread_cond_broadcast(&workspace_returned);
  pthread_mutex_unlock(&lock);
}

}  // namespace mlxg
