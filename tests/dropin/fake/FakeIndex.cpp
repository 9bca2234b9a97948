/// The fake FAISS's search of a GPU index, and what it is asked.
/// FAKE_UNKNOWN_RESULTS leaves out GpuIndex::search.

#include "faiss_bits/dropin/FaissIndex.h"
#include "fake/FakeFaiss.h"
#include "fake/FakeMemory.h"

namespace faiss::gpu {

#ifndef FAKE_UNKNOWN_RESULTS
void GpuIndex::search(
        int64_t,
        const float*,
        int64_t,
        float* distances,
        int64_t*,
        const SearchParameters*) const {
    distances[0] = kFakeAnswer;
}
#endif

int GpuIndex::getDevice() const {
    return 0;
}

std::shared_ptr<GpuResources> GpuIndex::getResources() {
    return std::make_shared<GpuResources>();
}

} // namespace faiss::gpu

float fakeIndexSearch(int64_t n, int k) {
    const float query[2] = {};
    float distances[4] = {};
    int64_t labels[4] = {};
    const faiss::gpu::GpuIndex index;
#ifndef FAKE_UNKNOWN_RESULTS
    index.search(n, query, k, distances, labels, nullptr);
#else
    (void)index, (void)n, (void)k, (void)query, (void)labels;
    distances[0] = kFakeAnswer;
#endif
    return distances[0];
}
