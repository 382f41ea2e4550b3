// guard.c is a preload library for Linux and glibc. It places each allocation of one shared
// library next to an unreadable page, so that the first access outside of the memory ends the
// process with SIGSEGV. It covers malloc, calloc, realloc and the aligned functions, and operator
// new if MLXG_GUARD_NEW is set. Allocations of other libraries pass through. The shared library
// must be present when the process begins: preload it if the process would load it later.
//
// Environment:
//
//	MLXG_GUARD          "end": the memory ends at an unreadable page, to the byte (the default)
//	                    "start": the memory begins after an unreadable page
//	MLXG_GUARD_NEW      set to cover operator new too, at several times the cost
//	MLXG_GUARD_LIBRARY  part of the file name of the library; libmlx.so by default
//
// Freed memory stays unreadable until the region has been used up once. A call of free detects a write
// to the rest of the allocation's pages, a double free and an address inside of an allocation: the
// process prints a line and aborts. New memory is filled with FILL.
//
// "guard: on" is printed at the first guarded allocation.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define REGION ((size_t)1 << 36) // bytes of address space
#define FILL 0x7b

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);
extern void __libc_free(void*);

// record describes the allocation whose pages begin at its index.
typedef struct {
  uint32_t offset; // offset of the memory in its first page
  uint32_t pages;
  size_t size;
} record;

static uintptr_t low, high; // the code of the library
static int at_start, guard_new;
static char* base; // the region
static size_t page, page_count;
static size_t next;     // page at which the next search begins
static uint8_t* in_use; // for each page
static record* records; // for each page
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void say(const char* text) {
  if (write(2, text, strlen(text)) < 0) return;
}

static void fail(const char* text) {
  say(text);
  abort();
}

static int find_library(struct dl_phdr_info* info, size_t size, void* name) {
  (void)size;
  if (!info->dlpi_name || !strstr(info->dlpi_name, name)) return 0;
  low = UINTPTR_MAX;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    uintptr_t to = from + info->dlpi_phdr[i].p_memsz;
    if (from < low) low = from;
    if (to > high) high = to;
  }
  return 1;
}

static void* reserve(size_t size, int protection) {
  void* p = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

__attribute__((constructor)) static void start(void) {
  const char* mode = getenv("MLXG_GUARD");
  const char* name = getenv("MLXG_GUARD_LIBRARY");
  at_start = mode && !strcmp(mode, "start");
  guard_new = getenv("MLXG_GUARD_NEW") != NULL;
  if (!dl_iterate_phdr(find_library, (void*)(name ? name : "libmlx.so"))) return;
  page = (size_t)sysconf(_SC_PAGESIZE);
  page_count = REGION / page;
  in_use = reserve(page_count, PROT_READ | PROT_WRITE);
  records = reserve(page_count * sizeof(record), PROT_READ | PROT_WRITE);
  char* region = reserve(REGION, PROT_NONE);
  if (!in_use || !records || !region) fail("guard: no address space for the region\n");
  base = region;
}

static int guarded(const void* p) { return base && (const char*)p >= base && (const char*)p < base + REGION; }

static int from_library(void* caller) { return base && (uintptr_t)caller >= low && (uintptr_t)caller < high; }

// take finds consecutive unused pages, from the end of the last search on, and marks them as used. It returns the index
// of the first page, or page_count if there are none. The caller holds the mutex.
static size_t take(size_t pages) {
  for (int round = 0; round < 2; round++) {
    size_t from = next;
    while (from + pages <= page_count) {
      size_t i = 0;
      while (i < pages && !in_use[from + i]) i++;
      if (i == pages) {
        memset(in_use + from, 1, pages);
        next = from + pages;
        return from;
      }
      from += i + 1;
    }
    next = 0;
  }
  return page_count;
}

// allocate returns memory next to an unreadable page, or NULL.
static void* allocate(size_t size, size_t align) {
  static int said;
  if (!size || size > REGION / 4) return NULL;
  if (!align) {
    // The largest alignment, up to 16, that divides the size, so that the memory ends at the page's end.
    align = size & -size;
    if (align > 16) align = 16;
  }
  size_t room = at_start ? size : (size + align - 1) / align * align;
  size_t pages = (room + page - 1) / page;
  if (align > page) return NULL;
  pthread_mutex_lock(&mutex);
  if (!said) {
    said = 1;
    say("guard: on\n");
  }
  size_t first = take(pages + 1);
  pthread_mutex_unlock(&mutex);
  if (first == page_count) return NULL;
  // One of the pages stays unreadable. The neighbor's unreadable page guards the other side.
  size_t index = first + (at_start ? 1 : 0);
  char* start = base + index * page;
  if (mprotect(start, pages * page, PROT_READ | PROT_WRITE)) { // too many mappings, or no memory
    pthread_mutex_lock(&mutex);
    memset(in_use + first, 0, pages + 1);
    pthread_mutex_unlock(&mutex);
    return NULL;
  }
  memset(start, FILL, pages * page);
  record* r = &records[index];
  r->offset = (uint32_t)(at_start ? 0 : pages * page - room);
  r->pages = (uint32_t)pages;
  r->size = size;
  return start + r->offset;
}

static record* record_of(void* p) {
  record* r = &records[((char*)p - base) / page];
  if (!r->pages || r->offset != (uintptr_t)p % page) fail("guard: free of memory that is not allocated\n");
  return r;
}

static void check_fill(const char* from, const char* to, const char* memory, size_t size) {
  for (; from < to; from++) {
    if (*from == FILL) continue;
    char text[128];
    snprintf(text, sizeof text, "guard: a write outside of the memory: byte %td of %zu became 0x%02x\n", from - memory, size,
             (unsigned char)*from);
    fail(text);
  }
}

static void release(void* p) {
  record* r = record_of(p);
  size_t index = r - records;
  char* start = base + index * page;
  size_t pages = r->pages;
  check_fill(start, p, p, r->size);
  check_fill((char*)p + r->size, start + pages * page, p, r->size);
  r->pages = 0;
  // A fresh mapping gives the memory back and merges with its neighbors.
  if (mmap(start, pages * page, PROT_NONE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
    mprotect(start, pages * page, PROT_NONE);
  pthread_mutex_lock(&mutex);
  memset(in_use + (at_start ? index - 1 : index), 0, pages + 1);
  pthread_mutex_unlock(&mutex);
}

#define CALLER __builtin_return_address(0)

void* malloc(size_t size) {
  void* p = from_library(CALLER) ? allocate(size, 0) : NULL;
  return p ? p : __libc_malloc(size);
}

void free(void* p) {
  int error = errno;
  if (guarded(p))
    release(p);
  else
    __libc_free(p);
  errno = error;
}

void* calloc(size_t count, size_t size) {
  size_t bytes;
  if (from_library(CALLER) && !__builtin_mul_overflow(count, size, &bytes)) {
    void* p = allocate(bytes, 0);
    if (p) return memset(p, 0, bytes);
  }
  return __libc_calloc(count, size);
}

void* realloc(void* p, size_t size) {
  int own = from_library(CALLER);
  if (p && !guarded(p)) return __libc_realloc(p, size);
  void* grown = own ? allocate(size, 0) : NULL;
  if (!grown) grown = __libc_malloc(size);
  if (!p || !grown) return grown;
  size_t before = record_of(p)->size;
  memcpy(grown, p, before < size ? before : size);
  release(p);
  return grown;
}

static void* aligned(void* caller, size_t align, size_t size) {
  void* p = from_library(caller) ? allocate(size, align) : NULL;
  return p ? p : __libc_memalign(align, size);
}

void* memalign(size_t align, size_t size) { return aligned(CALLER, align, size); }

void* aligned_alloc(size_t align, size_t size) { return aligned(CALLER, align, size); }

int posix_memalign(void** out, size_t align, size_t size) {
  if (align % sizeof(void*) || align & (align - 1) || !align) return EINVAL;
  void* p = aligned(CALLER, align, size);
  if (!p) return ENOMEM;
  *out = p;
  return 0;
}

size_t malloc_usable_size(void* p) {
  if (guarded(p)) return record_of(p)->size;
  size_t (*usable)(void*) = (size_t (*)(void*))dlsym(RTLD_NEXT, "malloc_usable_size");
  return usable(p);
}

// operator new(unsigned long) and operator new[](unsigned long). Without guarded memory they call the original
// function, which throws if the memory is exhausted.
#define OPERATOR_NEW(symbol)                                                                 \
  void* symbol(size_t size) {                                                                \
    static void* (*real)(size_t);                                                            \
    void* p = guard_new && from_library(CALLER) ? allocate(size, 0) : NULL;                  \
    if (p) return p;                                                                         \
    if (!real) real = (void* (*)(size_t))dlsym(RTLD_NEXT, #symbol);                          \
    return real(size);                                                                       \
  }
OPERATOR_NEW(_Znwm)
OPERATOR_NEW(_Znam)
