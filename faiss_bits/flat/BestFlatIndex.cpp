#include "faiss_bits/flat/BestFlatIndex.h"

#include "faiss_bits/flat/IndexFusedFlat.h"

namespace faiss_bits {

std::unique_ptr<faiss::IndexFlat> bestFlatIndex(
        int d,
        faiss::MetricType metric) {
    return std::make_unique<IndexFusedFlat>(d, metric);
}

} // namespace faiss_bits
