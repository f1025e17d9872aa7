/* A CUDA driver over host memory: enough of libcuda for cuda-core to make streams and events, allocate and copy.
   Work runs at once. What is not written out here succeeds and does nothing, kernel launches included. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef unsigned long long u64;

static int current; /* the device that is current; its context is 0x1000 + ordinal */
static size_t in_use;

static int count(void) {
  const char *text = getenv("STUB_DEVICES");
  return text ? atoi(text) : 1;
}

static size_t total(void) {
  const char *text = getenv("STUB_MEMORY");
  return text ? strtoull(text, NULL, 10) : (size_t)1 << 30;
}

int cuInit(unsigned flags) { return getenv("STUB_INIT") ? atoi(getenv("STUB_INIT")) : 0; }
int cuDriverGetVersion(int *version) { return *version = 13000, 0; }
int cuDeviceGetCount(int *n) { return *n = count(), 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, ordinal < count() ? 0 : 101; }
int cuDeviceGetName(char *name, int length, int device) { return snprintf(name, length, "Stub %d", device), 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { return *bytes = total(), 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  /* 10 warp size, 16 multiprocessors, 38 L2, 39 threads per multiprocessor, 75 and 76 capability, 97 shared memory */
  *value = attribute == 10 ? 32 : attribute == 16 ? 132 : attribute == 38 ? 50 << 20 : attribute == 39 ? 2048
         : attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 97 ? 232448 : 1;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = (void *)(0x1000 + (u64)device), 0; }
int cuCtxGetCurrent(void **context) { return *context = (void *)(0x1000 + (u64)current), 0; }
int cuCtxSetCurrent(void *context) { return current = (int)((u64)context - 0x1000), 0; }
int cuCtxGetDevice(int *device) { return *device = current, 0; }
int cuCtxGetDevice_v2(int *device, void *context) { return *device = (int)((u64)context - 0x1000), 0; }
int cuCtxGetStreamPriorityRange(int *least, int *greatest) { return *least = 0, *greatest = -5, 0; }

int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) {
  int *made = malloc(3 * sizeof(int));
  made[0] = current, made[1] = (int)flags, made[2] = priority;
  return *stream = made, 0;
}
int cuStreamDestroy_v2(void *stream) { return free(stream), 0; }
int cuStreamGetCtx(void *stream, void **context) { return *context = (void *)(0x1000 + (u64)((int *)stream)[0]), 0; }
int cuStreamGetCtx_v2(void *stream, void **context, void **green) { return *green = 0, cuStreamGetCtx(stream, context); }
int cuStreamGetFlags(void *stream, unsigned *flags) { return *flags = (unsigned)((int *)stream)[1], 0; }
int cuStreamGetPriority(void *stream, int *priority) { return *priority = ((int *)stream)[2], 0; }
int cuStreamQuery(void *stream) { return getenv("STUB_STATUS") ? atoi(getenv("STUB_STATUS")) : 0; }
int cuStreamSynchronize(void *stream) { return cuStreamQuery(stream); }
int cuCtxSynchronize(void) { return cuStreamQuery(0); }

int cuEventCreate(void **event, unsigned flags) { return *event = calloc(1, sizeof(double)), 0; }
int cuEventDestroy_v2(void *event) { return free(event), 0; }
int cuEventRecord(void *event, void *stream) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  *(double *)event = now.tv_sec * 1e3 + now.tv_nsec * 1e-6;
  return 0;
}
int cuEventQuery(void *event) { return cuStreamQuery(0); }
int cuEventSynchronize(void *event) { return cuStreamQuery(0); }
int cuEventElapsedTime(float *ms, void *start, void *end) { return *ms = (float)(*(double *)end - *(double *)start), 0; }
int cuEventElapsedTime_v2(float *ms, void *start, void *end) { return cuEventElapsedTime(ms, start, end); }

static int take(u64 *address, size_t bytes) {
  if (in_use + bytes > total()) return 2;
  size_t *memory = aligned_alloc(256, (bytes + 511) / 256 * 256);
  in_use += bytes;
  memory[0] = bytes;
  return *address = (u64)memory + 256, 0;
}
static int give(u64 address) {
  size_t *memory = (size_t *)(address - 256);
  return in_use -= memory[0], free(memory), 0;
}
int cuMemAllocAsync(u64 *address, size_t bytes, void *stream) { return take(address, bytes); }
int cuMemFreeAsync(u64 address, void *stream) { return give(address); }
int cuMemHostAlloc(void **address, size_t bytes, unsigned flags) { return *address = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096), 0; }
int cuMemFreeHost(void *address) { return free(address), 0; }
int cuMemGetInfo_v2(size_t *available, size_t *all) { return *all = total(), *available = total() - in_use, 0; }
int cuDeviceGetDefaultMemPool(void **pool, int device) { return *pool = (void *)(0x2000 + (u64)device), 0; }
int cuMemcpyHtoDAsync_v2(u64 to, const void *from, size_t bytes, void *stream) { return memcpy((void *)to, from, bytes), 0; }
int cuMemcpyDtoHAsync_v2(void *to, u64 from, size_t bytes, void *stream) { return memcpy(to, (void *)from, bytes), 0; }
int cuMemcpyDtoDAsync_v2(u64 to, u64 from, size_t bytes, void *stream) { return memcpy((void *)to, (void *)from, bytes), 0; }
int cuMemcpyPeerAsync(u64 to, void *there, u64 from, void *here, size_t bytes, void *stream) {
  if (there == here) return 1;
  return memcpy((void *)to, (void *)from, bytes), 0;
}
/* one pair of devices cannot reach one another: 0 and 2 */
int cuDeviceCanAccessPeer(int *can, int device, int peer) { return *can = device + peer != 2, device == peer ? 101 : 0; }
static int access_of[16][16]; /* of a device to another's pool: 0 none, 3 reading and writing */
int cuMemPoolSetAccess(void *pool, const int *wanted, size_t n) { /* type of place, ordinal, access */
  for (size_t i = 0; i < n; i++) access_of[wanted[3 * i + 1]][(u64)pool - 0x2000] = wanted[3 * i + 2];
  return 0;
}
int cuMemPoolGetAccess(int *access, void *pool, const int *place) { return *access = access_of[place[1]][(u64)pool - 0x2000], 0; }
int cuMemsetD8Async(u64 to, unsigned char byte, size_t bytes, void *stream) { return memset((void *)to, byte, bytes), 0; }

int cuGetErrorString(int status, const char **text) {
  return *text = status == 700 ? "an illegal memory access was encountered" : "stub error", 0;
}
int cuGetErrorName(int status, const char **text) {
  return *text = status == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_STUB", 0;
}

static int succeed(void) { return 0; }

static void *find(const char *symbol) {
  static const char *const suffixes[] = {"_v2", "", NULL};
  char name[256];
  for (int i = 0; suffixes[i]; i++) {
    snprintf(name, sizeof name, "%s%s", symbol, suffixes[i]);
    void *found = dlsym(RTLD_DEFAULT, name);
    Dl_info info, self;
    if (found && dladdr(found, &info) && dladdr((void *)succeed, &self) && info.dli_fbase == self.dli_fbase) return found;
  }
  return (void *)succeed;
}

int cuGetProcAddress_v2(const char *symbol, void **function, int version, u64 flags, int *status) {
  if (status) *status = 0;
  return *function = find(symbol), 0;
}
