#include "benchs/ivf/IvfSearches.h"

#include <set>

#include "benchs/common/Labels.h"

namespace faiss_bits::bench {

namespace {

DeviceArray<float> onDevice(const std::vector<float>& values) {
    DeviceArray<float> array(values.size());
    BITS_CUDA_CHECK(cudaMemcpy(
            array.data(),
            values.data(),
            values.size() * sizeof(float),
            cudaMemcpyHostToDevice));
    return array;
}

} // namespace

IvfSearches::IvfSearches(
        IvfResources& resources,
        const IvfShape& shape,
        const std::vector<float>& vectors,
        const std::vector<float>& queries,
        bool withRival)
        : indexes_(
                  resources,
                  shape,
                  int64_t(vectors.size()) / shape.d,
                  vectors.data(),
                  withRival),
          queries_(onDevice(queries)),
          reference_(indexes_, queries.data(), queries_.data()) {
    const auto added = onDevice(vectors);
    indexes_.add(int64_t(vectors.size()) / shape.d, added.data());
    BITS_CUDA_CHECK(cudaDeviceSynchronize());
}

IvfSearches::Probed IvfSearches::probed(int nprobe, int64_t q) {
    DeviceArray<float> toLists(q * nprobe);
    DeviceArray<int64_t> lists(q * nprobe);
    auto& index = indexes_.ours();
    index.quantizer->search(
            q, queries_.data(), nprobe, toLists.data(), lists.data());
    std::vector<int64_t> lengths(index.nlist);
    for (size_t l = 0; l < lengths.size(); ++l) {
        lengths[l] = index.getListLength(int(l));
    }
    Probed probed;
    std::vector<bool> isProbed(lengths.size());
    for (int64_t list : downloadLabels(lists, q * nprobe)) {
        if (list >= 0) {
            probed.pairs += lengths[list];
            probed.vectors += isProbed[list] ? 0 : lengths[list];
            isProbed[list] = true;
        }
    }
    return probed;
}

Measured IvfSearches::time(
        faiss::gpu::GpuIndexIVF& index,
        int nprobe,
        int64_t q,
        int k,
        TimingMode mode,
        const faiss::SearchParameters* params) {
    if (labels_.size() != size_t(q * k)) {
        distances_ = DeviceArray<float>(q * k);
        labels_ = DeviceArray<int64_t>(q * k);
    }
    index.nprobe = nprobe;
    mode.wallClock = true;
    mode.before = [&] { flush_.enqueue(); };
    return timeCall(
            [&](int) {
                index.search(
                        q,
                        queries_.data(),
                        k,
                        distances_.data(),
                        labels_.data(),
                        params);
            },
            mode);
}

IvfReference::Found IvfSearches::check(
        int nprobe,
        int64_t q,
        int k,
        const std::vector<bool>* members) {
    std::vector<int64_t> found(k);
    std::vector<float> distances(k);
    IvfReference::Found sum;
    BITS_CUDA_CHECK(cudaDeviceSynchronize()); // of the index's stream
    for (int64_t query : std::set<int64_t>{0, q / 2, q - 1}) {
        BITS_CUDA_CHECK(cudaMemcpy(
                found.data(),
                labels_.data() + query * k,
                k * sizeof(int64_t),
                cudaMemcpyDeviceToHost));
        BITS_CUDA_CHECK(cudaMemcpy(
                distances.data(),
                distances_.data() + query * k,
                k * sizeof(float),
                cudaMemcpyDeviceToHost));
        const auto one = reference_.check(
                query, nprobe, k, found.data(), distances.data(), members);
        sum.places += one.places;
        sum.wrong += one.wrong;
        sum.among += one.among;
    }
    return sum;
}

std::vector<int64_t> IvfSearches::labels() const {
    return downloadLabels(labels_, labels_.size());
}

} // namespace faiss_bits::bench
