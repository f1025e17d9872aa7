/* A CUDA driver over host memory: enough of libcuda for cuda-core to make streams and events, allocate and copy.
   Work runs at once, or with STUB_LATE=1 only when somebody waits for it, so that a missing wait shows. What is not
   written out here succeeds and does nothing, kernel launches included. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef unsigned long long u64;

static int current; /* the device that is current; its context is 0x1000 + ordinal */

/* Bytes that are in use: by this process, or with STUB_SHARED, a file's name, by all that name it. */
static size_t *in_use(void) {
  static size_t own, *place;
  if (!place && getenv("STUB_SHARED")) {
    int file = open(getenv("STUB_SHARED"), O_RDWR | O_CREAT, 0600);
    if (ftruncate(file, sizeof own)) abort();
    place = mmap(NULL, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  return place ? place : &own;
}

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

/* -- streams and events. Neither is ever freed: what is queued may refer to it. */

typedef struct Stream Stream;
typedef struct Graph Graph;
typedef struct { double time; int recorded, done; Stream *stream; Graph *captured; } Event;
typedef struct Work {
  struct Work *next;
  enum { COPY, FILL, FREE, RECORD, WAIT } kind;
  u64 to, from; /* FILL: the byte is `from` */
  size_t bytes;
  Event *event;
  int turn; /* which recording of the event */
  Stream *other; /* WAIT: where that was recorded */
} Work;
struct Stream { int device, flags, priority; Work *first, *last; Stream *older; Graph *captured; };
static Stream *newest;
struct Graph { Work *entries; size_t count; int invalid; }; /* what a stream was given while it was captured */
static int captures; /* how many streams are being captured */

static int give(u64 address);

static void perform(Work *work) {
  struct timespec now;
  switch (work->kind) {
    case COPY: memcpy((void *)work->to, (void *)work->from, work->bytes); break;
    case FILL: memset((void *)work->to, (int)work->from, work->bytes); break;
    case FREE: give(work->to); break;
    case RECORD:
      clock_gettime(CLOCK_MONOTONIC, &now);
      work->event->time = now.tv_sec * 1e3 + now.tv_nsec * 1e-6;
      work->event->done = work->turn;
    case WAIT: break;
  }
}
static void step(Stream *stream) { /* run the first piece of work, or one of the stream that it waits for */
  Work *work = stream->first;
  if (work->kind == WAIT && work->event->done < work->turn && work->other->first) return step(work->other);
  stream->first = work->next;
  perform(work);
  free(work);
}
static int lost(void) { return getenv("STUB_LOST") ? atoi(getenv("STUB_LOST")) : 0; } /* what all calls say by then */
static int put(void *to, Work work) {
  Stream *stream = to;
  if (lost()) return lost();
  Graph *graph = stream ? stream->captured : NULL;
  if (graph) {
    graph->entries = realloc(graph->entries, (graph->count + 1) * sizeof work);
    return graph->entries[graph->count++] = work, 0;
  }
  if (!stream || !getenv("STUB_LATE")) return perform(&work), 0;
  Work *made = malloc(sizeof *made);
  *made = work;
  made->next = NULL;
  if (stream->first) stream->last->next = made; else stream->first = made;
  return stream->last = made, 0;
}
/* A captured stream refuses what would need its work to run, and its capture is of no use any more. */
static int refuses(void *stream) {
  Graph *graph = stream ? ((Stream *)stream)->captured : NULL;
  return graph ? (graph->invalid = 1) : 0;
}
static int status(void) { return getenv("STUB_STATUS") ? atoi(getenv("STUB_STATUS")) : lost(); }

int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) {
  Stream *made = calloc(1, sizeof *made);
  *made = (Stream){current, (int)flags, priority, NULL, NULL, newest};
  return *stream = newest = made, 0;
}
int cuStreamDestroy_v2(void *stream) { return 0; }
int cuStreamGetCtx(void *stream, void **context) { return *context = (void *)(0x1000 + (u64)((Stream *)stream)->device), 0; }
int cuStreamGetCtx_v2(void *stream, void **context, void **green) { return *green = 0, cuStreamGetCtx(stream, context); }
int cuStreamGetFlags(void *stream, unsigned *flags) { return *flags = (unsigned)((Stream *)stream)->flags, 0; }
int cuStreamGetPriority(void *stream, int *priority) { return *priority = ((Stream *)stream)->priority, 0; }
int cuStreamQuery(void *stream) { /* time passes between two questions: one piece of work runs */
  if (refuses(stream)) return 900;
  if (((Stream *)stream)->first) step(stream);
  return status() ? status() : ((Stream *)stream)->first ? 600 : 0;
}
int cuStreamSynchronize(void *stream) {
  if (refuses(stream)) return 900;
  while (((Stream *)stream)->first) step(stream);
  return status();
}
int cuCtxSynchronize(void) {
  if (captures) return 900;
  for (Stream *each = newest; each; each = each->older)
    if (each->device == current) cuStreamSynchronize(each);
  return status();
}

int cuEventCreate(void **event, unsigned flags) { return *event = calloc(1, sizeof(Event)), 0; }
int cuEventDestroy_v2(void *event) { return 0; }
int cuEventRecord(void *event, void *stream) {
  Event *it = event;
  it->stream = stream;
  it->captured = stream ? ((Stream *)stream)->captured : NULL;
  if (it->captured) return 0;
  return put(stream, (Work){.kind = RECORD, .event = it, .turn = ++it->recorded});
}
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  Event *it = event;
  if (((Stream *)stream)->captured != it->captured) return 905;
  return it->stream ? put(stream, (Work){.kind = WAIT, .event = it, .turn = it->recorded, .other = it->stream}) : 0;
}
int cuEventQuery(void *event) {
  Event *it = event;
  if (it->captured) return 907;
  if (it->done < it->recorded) step(it->stream);
  return status() ? status() : it->done < it->recorded ? 600 : 0;
}
int cuEventSynchronize(void *event) {
  Event *it = event;
  if (it->captured) return 907;
  for (int turn = it->recorded; it->done < turn;) step(it->stream);
  return status();
}
int cuEventElapsedTime(float *ms, void *start, void *end) { return *ms = (float)(((Event *)end)->time - ((Event *)start)->time), 0; }
int cuEventElapsedTime_v2(float *ms, void *start, void *end) { return cuEventElapsedTime(ms, start, end); }

/* -- graphs */

int cuStreamBeginCapture_v2(void *stream, int mode) {
  if (((Stream *)stream)->captured) return 401;
  captures++;
  return ((Stream *)stream)->captured = calloc(1, sizeof(Graph)), 0;
}
int cuGraphDestroy(void *graph) { return free(((Graph *)graph)->entries), free(graph), 0; }
int cuStreamEndCapture(void *stream, void **graph) {
  Graph *found = ((Stream *)stream)->captured;
  if (!found) return 401;
  captures--, ((Stream *)stream)->captured = NULL;
  if (found->invalid) return *graph = NULL, cuGraphDestroy(found), 901;
  return *graph = found, 0;
}
int cuGraphInstantiateWithFlags(void **executable, void *graph, u64 flags) {
  Graph *made = malloc(sizeof *made);
  *made = *(Graph *)graph;
  made->entries = malloc(made->count * sizeof *made->entries + 1);
  memcpy(made->entries, ((Graph *)graph)->entries, made->count * sizeof *made->entries);
  return *executable = made, 0;
}
int cuGraphExecDestroy(void *executable) { return cuGraphDestroy(executable); }
int cuGraphGetNodes(void *graph, void **nodes, size_t *count) { return *count = ((Graph *)graph)->count, 0; }
int cuGraphLaunch(void *executable, void *stream) {
  if (refuses(stream)) return 900;
  for (size_t i = 0; i < ((Graph *)executable)->count; i++) put(stream, ((Graph *)executable)->entries[i]);
  return 0;
}

static int take(u64 *address, size_t bytes) {
  if (__atomic_add_fetch(in_use(), bytes, __ATOMIC_SEQ_CST) > total()) return __atomic_sub_fetch(in_use(), bytes, __ATOMIC_SEQ_CST), 2;
  size_t *memory = aligned_alloc(256, (bytes + 511) / 256 * 256);
  memory[0] = bytes;
  return *address = (u64)memory + 256, 0;
}
static int give(u64 address) {
  size_t *memory = (size_t *)(address - 256);
  __atomic_sub_fetch(in_use(), memory[0], __ATOMIC_SEQ_CST);
  if (!getenv("STUB_LATE")) return free(memory), 0;
  return memset((void *)address, 0xFF, memory[0]), 0; /* whoever still reads it shall see that it is gone */
}
int cuMemAllocAsync(u64 *address, size_t bytes, void *stream) {
  return lost() ? lost() : refuses(stream) ? 900 : take(address, bytes);
}
int cuMemFreeAsync(u64 address, void *stream) { return refuses(stream) ? 900 : put(stream, (Work){.kind = FREE, .to = address}); }
static size_t pinned; /* bytes of pinned memory, of which there are STUB_PINNED at most */
int cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
  if (getenv("STUB_PINNED") && pinned + bytes > strtoull(getenv("STUB_PINNED"), NULL, 10)) return 2;
  size_t *memory = aligned_alloc(4096, (bytes + 8191) / 4096 * 4096);
  pinned += memory[0] = bytes;
  return *address = (char *)memory + 4096, 0;
}
int cuMemFreeHost(void *address) {
  size_t *memory = (size_t *)((char *)address - 4096);
  return pinned -= memory[0], free(memory), 0;
}
int cuMemGetInfo_v2(size_t *available, size_t *all) { return *all = total(), *available = total() - *in_use(), 0; }
int cuDeviceGetDefaultMemPool(void **pool, int device) { return *pool = (void *)(0x2000 + (u64)device), 0; }
static u64 threshold; /* above which a pool gives memory back (attribute 4) */
int cuMemPoolSetAttribute(void *pool, int attribute, void *value) { return attribute == 4 ? threshold = *(u64 *)value, 0 : 1; }
int cuMemPoolGetAttribute(void *pool, int attribute, void *value) { return attribute == 4 ? *(u64 *)value = threshold, 0 : 1; }
static int copy(u64 to, u64 from, size_t bytes, void *stream) {
  return put(stream, (Work){.kind = COPY, .to = to, .from = from, .bytes = bytes});
}
int cuMemcpyHtoDAsync_v2(u64 to, const void *from, size_t bytes, void *stream) { return copy(to, (u64)from, bytes, stream); }
int cuMemcpyDtoHAsync_v2(void *to, u64 from, size_t bytes, void *stream) { return copy((u64)to, from, bytes, stream); }
int cuMemcpyDtoDAsync_v2(u64 to, u64 from, size_t bytes, void *stream) { return copy(to, from, bytes, stream); }
int cuMemcpyPeerAsync(u64 to, void *there, u64 from, void *here, size_t bytes, void *stream) {
  return there == here ? 1 : copy(to, from, bytes, stream);
}
/* one pair of devices cannot reach one another: 0 and 2 */
int cuDeviceCanAccessPeer(int *can, int device, int peer) { return *can = device + peer != 2, device == peer ? 101 : 0; }
static int access_of[16][16]; /* of a device to another's pool: 0 none, 3 reading and writing */
int cuMemPoolSetAccess(void *pool, const int *wanted, size_t n) { /* type of place, ordinal, access */
  for (size_t i = 0; i < n; i++) access_of[wanted[3 * i + 1]][(u64)pool - 0x2000] = wanted[3 * i + 2];
  return 0;
}
int cuMemPoolGetAccess(int *access, void *pool, const int *place) { return *access = access_of[place[1]][(u64)pool - 0x2000], 0; }
int cuMemsetD8Async(u64 to, unsigned char byte, size_t bytes, void *stream) {
  return put(stream, (Work){.kind = FILL, .to = to, .from = byte, .bytes = bytes});
}

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
