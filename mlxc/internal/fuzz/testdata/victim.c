// victim.c is a library for the test of guard.c. The argument of misuse names a memory error, which it commits.
#include <stdlib.h>
#include <string.h>

int misuse(const char* how) {
  volatile char* p = malloc(13);
  volatile char* q = calloc(5, 3);
  p = realloc((void*)p, 21);
  memset((void*)p, 1, 21);
  int sum = q[14];
  if (!strcmp(how, "read behind")) sum += p[21];
  if (!strcmp(how, "write behind")) p[21] = 1;
  if (!strcmp(how, "read before")) sum += p[-1];
  if (!strcmp(how, "write before")) p[-1] = 1;
  free((void*)p);
  if (!strcmp(how, "read freed")) sum += p[0];
  if (!strcmp(how, "free twice")) free((void*)p);
  void* aligned = aligned_alloc(64, 100);
  if (!strcmp(how, "write behind aligned")) ((volatile char*)aligned)[100] = 1;
  free(aligned);
  free((void*)q);
  return sum;
}
