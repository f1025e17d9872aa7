/* A CUDA driver over host memory: enough of libcuda for cuda-core to make streams and events, allocate, copy, capture.
   Work runs at once, or with STUB_LATE=1 only when somebody waits for it, so that a missing wait shows. What is not
   written out here succeeds and does nothing, kernel launches included; libcuda_emulated.c adds those. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifndef EMULATED
#define EMULATED 0 /* whether kernels run, and a fault ends the context */
#endif
typedef unsigned long long u64;
enum { DEVICES = 16 };

static __thread int current = -1; /* the device that is current in the thread, if one is; its context is 0x1000 + ordinal */
static int faults[DEVICES]; /* what ended a device's context */

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
static int setting(const char *name, int otherwise) { return getenv(name) ? atoi(getenv(name)) : otherwise; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  /* 10 warp size, 16 multiprocessors, 38 L2, 39 threads per multiprocessor, 75 and 76 capability, 97 shared memory */
  int capability = setting("STUB_CAPABILITY", 90);
  *value = attribute == 10 ? 32 : attribute == 16 ? setting("STUB_MULTIPROCESSORS", 132) : attribute == 38 ? 50 << 20
         : attribute == 39 ? 2048 : attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10
         : attribute == 97 ? (capability < 90 ? 163 : 227) << 10 : 1;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = (void *)(0x1000 + (u64)device), 0; }
int cuCtxGetCurrent(void **context) { return *context = current < 0 ? NULL : (void *)(0x1000 + (u64)current), 0; }
int cuCtxSetCurrent(void *context) { return current = context ? (int)((u64)context - 0x1000) : -1, 0; }
int cuCtxGetDevice(int *device) { return *device = current, current < 0 ? 201 : 0; }
int cuCtxGetDevice_v2(int *device, void *context) {
  return *device = context ? (int)((u64)context - 0x1000) : current, 0;
}
int cuCtxGetStreamPriorityRange(int *least, int *greatest) { return *least = 0, *greatest = -5, 0; }

/* -- streams and events. Neither is ever freed: what is queued may refer to it. Nor is a graph, but for its work. */

enum { STREAMS = 32 }; /* in one capture */
typedef struct Stream Stream;
typedef struct Graph Graph;
typedef unsigned Seen[STREAMS]; /* how much of each captured stream's work something comes after */
typedef struct { double time; int device, flags, recorded, done; Stream *stream; Graph *captured; Seen seen; } Event;
typedef struct Work {
  struct Work *next;
  enum { COPY, FILL, FREE, LAUNCH, RECORD, WAIT } kind;
  u64 to, from; /* FILL: the byte is `from`; LAUNCH: `to` is for `run_kernel` */
  size_t bytes;
  int ends; /* of a copy or fill that are in device memory: 1 `to`, 2 `from` */
  Event *event;
  int turn; /* which recording of the event */
  Stream *other; /* WAIT: where that was recorded */
} Work;
struct Stream { int device, flags, priority, gone; Work *first, *last; Stream *older; Graph *captured; unsigned place; Seen seen; };
static Stream *newest;
/* What streams were given while they were captured, in that order; a stream's `place` is among these. */
struct Graph { Work *entries; size_t count; int invalid, ended, mode; pthread_t thread; Stream *origin; unsigned streams; Seen made; };
static int (*run_kernel)(u64 launch, int device); /* returns a status */
static int give(u64 address);
static int inside(u64 address, size_t bytes, int freed);

static int lost(int device) { /* what all calls say by then; with STUB_FORGIVES the next one, so that other tests run */
  int stub = setting("STUB_LOST", 0), fault = device < 0 ? 0 : faults[device];
  if (fault && getenv("STUB_FORGIVES")) faults[device] = 0;
  return stub ? stub : fault;
}
static int reachable(const Work *work, int freed) {
  return (!(work->ends & 1) || inside(work->to, work->bytes, freed)) && (!(work->ends & 2) || inside(work->from, work->bytes, freed));
}
static void perform(Work *work, int device) {
  struct timespec now;
  if (EMULATED && work->kind < RECORD && faults[device]) return;
  if (EMULATED && !reachable(work, 1)) { faults[device] = 700; return; }
  switch (work->kind) {
    case COPY: memcpy((void *)work->to, (void *)work->from, work->bytes); break;
    case FILL: memset((void *)work->to, (int)work->from, work->bytes); break;
    case FREE: give(work->to); break;
    case LAUNCH: faults[device] = run_kernel(work->to, device); break;
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
  perform(work, stream->device);
  free(work);
}
static int add(Stream *stream, Work work) {
  if (stream && stream->gone) return 400;
  Graph *graph = stream ? stream->captured : NULL;
  if (graph) {
    if (graph->invalid) return 901;
    graph->entries = realloc(graph->entries, (graph->count + 1) * sizeof work);
    stream->seen[stream->place] = ++graph->made[stream->place];
    return graph->entries[graph->count++] = work, 0;
  }
  for (Stream *each = stream ? NULL : newest; each; each = each->older) /* CUDA's own stream waits for blocking ones */
    while (each->first && each->device == current && !(each->flags & 1)) step(each);
  if (!stream || !getenv("STUB_LATE")) return perform(&work, stream ? stream->device : current), 0;
  Work *made = malloc(sizeof *made);
  *made = work;
  made->next = NULL;
  if (stream->first) stream->last->next = made; else stream->first = made;
  return stream->last = made, 0;
}
static int put(void *stream, Work work) { return reachable(&work, 0) ? add(stream, work) : 1; }
/* A captured stream refuses what would need its work to run, and its capture is of no use any more. */
static int refuses(void *stream) {
  Graph *graph = stream ? ((Stream *)stream)->captured : NULL;
  return graph ? (graph->invalid = 1) : 0;
}
static int status(int device) { return getenv("STUB_STATUS") ? atoi(getenv("STUB_STATUS")) : lost(device); }

int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) {
  Stream *made = calloc(1, sizeof *made);
  *made = (Stream){.device = current, .flags = (int)flags, .priority = priority, .older = newest};
  return *stream = newest = made, 0;
}
int cuStreamDestroy_v2(void *stream) { return ((Stream *)stream)->gone = 1, 0; }
int cuStreamGetCtx(void *stream, void **context) { return *context = (void *)(0x1000 + (u64)((Stream *)stream)->device), 0; }
int cuStreamGetCtx_v2(void *stream, void **context, void **green) { return *green = 0, cuStreamGetCtx(stream, context); }
int cuStreamGetFlags(void *stream, unsigned *flags) { return *flags = (unsigned)((Stream *)stream)->flags, 0; }
int cuStreamGetPriority(void *stream, int *priority) { return *priority = ((Stream *)stream)->priority, 0; }
int cuStreamQuery(void *stream) { /* time passes between two questions: one piece of work runs */
  if (refuses(stream)) return 900;
  if (((Stream *)stream)->first) step(stream);
  return status(current) ?: ((Stream *)stream)->first ? 600 : 0;
}
int cuStreamSynchronize(void *stream) {
  if (refuses(stream)) return 900;
  while (((Stream *)stream)->first) step(stream);
  return status(((Stream *)stream)->device);
}
int cuCtxSynchronize(void) {
  int refused = 0;
  for (Stream *each = newest; each; each = each->older) refused |= each->device == current && refuses(each);
  if (refused) return 900;
  for (Stream *each = newest; each; each = each->older)
    if (each->device == current) cuStreamSynchronize(each);
  return status(current);
}

int cuEventCreate(void **event, unsigned flags) {
  Event *made = *event = calloc(1, sizeof *made);
  return made->device = current, made->flags = (int)flags, 0;
}
int cuEventDestroy_v2(void *event) { return 0; }
/* 1 and 2 are CUDA's own streams, of the device and of the thread; here they are one, whose work runs at once. */
static void *named(void *stream) { return (u64)stream < 3 ? NULL : stream; }
int cuEventRecord(void *event, void *stream) {
  Event *it = event;
  stream = named(stream);
  if (stream && ((Stream *)stream)->device != it->device) return 400;
  it->stream = stream;
  it->captured = stream ? ((Stream *)stream)->captured : NULL;
  if (it->captured) return memcpy(it->seen, it->stream->seen, sizeof it->seen), it->captured->invalid ? 901 : 0;
  return put(stream, (Work){.kind = RECORD, .event = it, .turn = ++it->recorded});
}
int cuStreamWaitEvent(void *waiting, void *event, unsigned flags) {
  Stream *stream = named(waiting);
  Event *it = event;
  if (!stream && it->stream && !it->captured)
    while (it->done < it->recorded) step(it->stream);
  Graph *ours = stream ? stream->captured : NULL, *theirs = it->captured;
  if (!it->stream) return 0;
  if (!ours && !theirs) return put(stream, (Work){.kind = WAIT, .event = it, .turn = it->recorded, .other = it->stream});
  if (ours && ours != theirs) ours->invalid = 1;
  if (!theirs || theirs->ended) return 905;
  if (ours && ours != theirs) return theirs->invalid = 1, 902;
  if (!ours) { /* a fork: from here on it is captured too */
    if (!stream || theirs->streams == STREAMS) return 900;
    stream->captured = theirs, stream->place = theirs->streams++;
    memset(stream->seen, 0, sizeof stream->seen);
  }
  for (int i = 0; i < STREAMS; i++)
    if (stream->seen[i] < it->seen[i]) stream->seen[i] = it->seen[i];
  return theirs->invalid ? 901 : 0;
}
int cuEventQuery(void *event) {
  Event *it = event;
  if (it->captured) return 907;
  if (it->done < it->recorded) step(it->stream);
  return status(it->device) ?: it->done < it->recorded ? 600 : 0;
}
int cuEventSynchronize(void *event) {
  Event *it = event;
  if (it->captured) return 907;
  for (int turn = it->recorded; it->done < turn;) step(it->stream);
  return status(it->device);
}
int cuEventElapsedTime(float *ms, void *start, void *end) {
  Event *first = start, *last = end;
  if (first->captured || last->captured) return 907;
  if ((first->flags | last->flags) & 2 || !first->recorded || !last->recorded) return 400; /* 2: without time */
  if (first->done < first->recorded || last->done < last->recorded) return 600;
  return *ms = (float)(last->time - first->time), 0;
}
int cuEventElapsedTime_v2(float *ms, void *start, void *end) { return cuEventElapsedTime(ms, start, end); }

/* -- graphs */

int cuStreamBeginCapture_v2(void *stream, int mode) {
  Stream *it = stream;
  if (!it || it->captured) return it ? 401 : 900;
  Graph *made = it->captured = calloc(1, sizeof *made);
  made->mode = mode, made->thread = pthread_self(), made->origin = it, made->streams = 1;
  return it->place = 0, memset(it->seen, 0, sizeof it->seen), 0;
}
int cuStreamIsCapturing(void *stream, int *how) {
  Graph *found = stream ? ((Stream *)stream)->captured : NULL;
  return *how = found ? 1 + found->invalid : 0, 0;
}
int cuGraphDestroy(void *graph) { return free(((Graph *)graph)->entries), ((Graph *)graph)->count = 0; }
int cuStreamEndCapture(void *stream, void **graph) {
  Graph *found = ((Stream *)stream)->captured;
  *graph = NULL;
  if (!found) return 401;
  if (found->origin != stream) return 903;
  if (found->mode < 2 && !pthread_equal(found->thread, pthread_self())) return 908; /* 2: relaxed */
  int joined = !memcmp(found->origin->seen, found->made, sizeof found->made);
  found->ended = 1;
  for (Stream *each = newest; each; each = each->older)
    if (each->captured == found) each->captured = NULL;
  if (found->invalid || !joined) return cuGraphDestroy(found), found->invalid ? 901 : 904;
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
  for (size_t i = 0; i < ((Graph *)executable)->count; i++) add(stream, ((Graph *)executable)->entries[i]);
  return 0;
}

typedef struct { u64 address; size_t bytes; int device, freed; } Span; /* device -1: pinned */
static Span *spans;
static size_t taken;
static Span *span_of(u64 address, size_t bytes) {
  for (size_t i = taken; i--;)
    if (spans[i].address <= address && address + bytes <= spans[i].address + spans[i].bytes) return &spans[i];
  return NULL;
}
static int inside(u64 address, size_t bytes, int freed) { /* memory, or with `freed` what is still freed before its time */
  Span *found = span_of(address, bytes);
  return found && (freed || !found->freed);
}
static u64 note(void *memory, size_t bytes, int device) {
  spans = realloc(spans, (taken + 1) * sizeof *spans);
  return (spans[taken++] = (Span){(u64)memory, bytes ? bytes : 1, device}).address;
}
static int take(u64 *address, size_t bytes, int device) {
  if (__atomic_add_fetch(in_use(), bytes, __ATOMIC_SEQ_CST) > total()) return __atomic_sub_fetch(in_use(), bytes, __ATOMIC_SEQ_CST), 2;
  return *address = note(aligned_alloc(256, (bytes + 255) / 256 * 256), bytes, device), 0;
}
static int give(u64 address) { /* the address is not used again soon: whoever still reads it shall see that it is gone */
  static void *gone[256];
  static unsigned turn;
  Span *found = span_of(address, 1), freed = *found;
  __atomic_sub_fetch(in_use(), freed.bytes, __ATOMIC_SEQ_CST);
  *found = spans[--taken];
  if (getenv("STUB_LATE")) return memset((void *)address, 0xFF, freed.bytes), 0;
  return free(gone[turn % 256]), gone[turn++ % 256] = (void *)address, 0;
}
int cuMemAllocAsync(u64 *address, size_t bytes, void *stream) {
  return refuses(stream) ? 900 : take(address, bytes, stream ? ((Stream *)stream)->device : current);
}
int cuMemFreeAsync(u64 address, void *stream) {
  Span *found = span_of(address, 1);
  if (refuses(stream)) return 900;
  if (!found || found->address != address || found->freed) return 1;
  return found->freed = 1, put(stream, (Work){.kind = FREE, .to = address});
}
static size_t pinned; /* bytes of pinned memory, of which there are STUB_PINNED at most */
int cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
  if (getenv("STUB_PINNED") && pinned + bytes > strtoull(getenv("STUB_PINNED"), NULL, 10)) return 2;
  pinned += bytes;
  return *address = (void *)note(aligned_alloc(4096, (bytes + 4095) / 4096 * 4096), bytes, -1), 0;
}
int cuMemFreeHost(void *address) {
  Span *found = span_of((u64)address, 1);
  if (!found || found->address != (u64)address || found->device >= 0) return 1;
  pinned -= found->bytes;
  return *found = spans[--taken], free(address), 0;
}
int cuPointerGetAttribute(void *found, int attribute, u64 address) { /* 9: the ordinal of the device */
  Span *span = span_of(address, 1);
  if (attribute != 9 || !span) return 1;
  return *(int *)found = span->device < 0 ? 0 : span->device, 0;
}
int cuMemGetInfo_v2(size_t *available, size_t *all) { return *all = total(), *available = total() - *in_use(), 0; }
int cuDeviceGetDefaultMemPool(void **pool, int device) { return *pool = (void *)(0x2000 + (u64)device), 0; }
static u64 threshold; /* above which a pool gives memory back (attribute 4) */
int cuMemPoolSetAttribute(void *pool, int attribute, void *value) { return attribute == 4 ? threshold = *(u64 *)value, 0 : 1; }
int cuMemPoolGetAttribute(void *pool, int attribute, void *value) { return attribute == 4 ? *(u64 *)value = threshold, 0 : 1; }
static int copy(u64 to, u64 from, size_t bytes, void *stream, int ends) {
  return put(stream, (Work){.kind = COPY, .to = to, .from = from, .bytes = bytes, .ends = ends});
}
int cuMemcpyHtoDAsync_v2(u64 to, const void *from, size_t bytes, void *stream) { return copy(to, (u64)from, bytes, stream, 1); }
int cuMemcpyDtoHAsync_v2(void *to, u64 from, size_t bytes, void *stream) { return copy((u64)to, from, bytes, stream, 2); }
int cuMemcpyDtoDAsync_v2(u64 to, u64 from, size_t bytes, void *stream) { return copy(to, from, bytes, stream, 3); }
int cuMemcpyPeerAsync(u64 to, void *there, u64 from, void *here, size_t bytes, void *stream) {
  return there == here ? 1 : copy(to, from, bytes, stream, 3);
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
  return put(stream, (Work){.kind = FILL, .to = to, .from = byte, .bytes = bytes, .ends = 1});
}

/* The statuses that occur. */
static const struct { int status; const char *name, *text; } NAMES[] = {
  {0, "CUDA_SUCCESS", "no error"}, {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"}, {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
  {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"}, {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
  {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"}, {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
  {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
  {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
  {401, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
  {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"}, {600, "CUDA_ERROR_NOT_READY", "device not ready"},
  {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
  {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
  {710, "CUDA_ERROR_ASSERT", "device-side assert triggered"}, {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
  {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
  {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
  {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
  {902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "operation would result in a merge of separate capture sequences"},
  {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not ended in the same stream as it began"},
  {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
  {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency created on uncaptured work in another stream"},
  {907, "CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on an event last recorded in a capturing stream"},
  {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "attempt to end a capture that is another thread's"},
};
static int describe(int status, const char **text, int by_name) {
  for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
    if (NAMES[i].status == status) return *text = by_name ? NAMES[i].name : NAMES[i].text, 0;
  return *text = by_name ? "CUDA_ERROR_UNKNOWN" : "unknown error", 0;
}
int cuGetErrorString(int status, const char **text) { return describe(status, text, 0); }
int cuGetErrorName(int status, const char **text) { return describe(status, text, 1); }

/* -- one thread at a time, in a context that is not lost. A thread that waits here lets others run Python: work may. */

static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static void hold(void) {
  if (!pthread_mutex_trylock(&mutex)) return;
  int (*running)(void) = dlsym(RTLD_DEFAULT, "PyGILState_Check");
  void *(*save)(void) = dlsym(RTLD_DEFAULT, "PyEval_SaveThread"), *python = running && running() ? save() : NULL;
  void (*restore)(void *) = dlsym(RTLD_DEFAULT, "PyEval_RestoreThread");
  pthread_mutex_lock(&mutex);
  if (python) restore(python);
}
static int done(int status) { return pthread_mutex_unlock(&mutex), status; }
static int ready(void) { return current < 0 ? 201 : lost(current); }
typedef int Call(long, long, long, long, long, long);
static int checked(Call *call, int context, long a, long b, long c, long d, long e, long f) {
  hold();
  int status = context ? ready() : 0;
  return done(status ?: call(a, b, c, d, e, f));
}
#define CHECKED(X) X(cuCtxSynchronize, 1) X(cuCtxGetStreamPriorityRange, 1) X(cuStreamCreateWithPriority, 1) \
  X(cuStreamQuery, 1) X(cuStreamSynchronize, 1) X(cuStreamWaitEvent, 1) X(cuStreamBeginCapture_v2, 1) \
  X(cuStreamEndCapture, 1) X(cuEventCreate, 1) X(cuEventRecord, 1) X(cuEventSynchronize, 1) X(cuEventQuery, 0) \
  X(cuGraphLaunch, 1) X(cuGraphInstantiateWithFlags, 1) X(cuGraphDestroy, 0) X(cuGraphExecDestroy, 0) \
  X(cuMemAllocAsync, 1) X(cuMemFreeAsync, 1) X(cuMemHostAlloc, 1) X(cuMemFreeHost, 1) X(cuMemGetInfo_v2, 1) \
  X(cuMemcpyHtoDAsync_v2, 1) X(cuMemcpyDtoHAsync_v2, 1) X(cuMemcpyDtoDAsync_v2, 1) X(cuMemcpyPeerAsync, 1) \
  X(cuMemsetD8Async, 1)
#define FUNCTION(name, context) \
  static int checked_##name(long a, long b, long c, long d, long e, long f) { return checked((Call *)name, context, a, b, c, d, e, f); }
CHECKED(FUNCTION)
#define ENTRY(name, context) {#name, (void *)checked_##name},
static const struct { const char *name; void *function; } CALLS[] = {CHECKED(ENTRY)};

static int succeed(void) { return 0; }

static void *find(const char *symbol) {
  static const char *const suffixes[] = {"_v2", "", NULL};
  char name[256];
  for (int i = 0; suffixes[i]; i++) {
    snprintf(name, sizeof name, "%s%s", symbol, suffixes[i]);
    for (size_t j = 0; j < sizeof CALLS / sizeof *CALLS; j++)
      if (!strcmp(CALLS[j].name, name)) return CALLS[j].function;
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
