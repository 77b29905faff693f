// One pool of threads for the whole program (std::thread, so that ThreadSanitizer sees every edge; oneDNN is
// called single-threaded from inside a task). Work is cut by the caller into tasks whose results do not
// depend on which thread runs them, so results are the same for any number of threads.
#pragma once

#include <cstdint>
#include <functional>

namespace quantmap {

// Number of workers; 0 means one for each processor this process may use. Call before the first parallel_for
// or between two.
void set_thread_count(int count);
int thread_count();

// Calls body(index, worker) for every index in [0, count), worker in [0, thread_count()); returns when all
// are done. Indices are handed out in order. The first exception is rethrown here after the rest stopped. A
// call from inside a body runs serially on that worker.
void parallel_for(std::int64_t count, const std::function<void(std::int64_t index, int worker)>& body);

}  // namespace quantmap
