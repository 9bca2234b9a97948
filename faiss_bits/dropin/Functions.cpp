#include "faiss_bits/dropin/Functions.h"

namespace faiss_bits::dropin {

const std::vector<Function>& functions() {
    static const auto& all = *new std::vector<Function>{
            describeBlockSelect<int>(),
            describeBlockSelect<int64_t>(),
            describeBlockSelectPair<int>(),
            describeBlockSelectPair<int64_t>(),
            describeL2SelectMin<int>(),
            describeL2SelectMin<int64_t>(),
            describeL2Distance<int>(),
            describeL2Distance<int64_t>(),
            describeIPDistance<int>(),
            describeIPDistance<int64_t>(),
            describeInterleavedScan<int>(),
            describeInterleavedScan<int64_t>(),
            describeFlatScan<int>(),
            describeFlatScan<int64_t>(),
            describeProductScan<int>(),
            describeProductScan<int64_t>(),
            describeProductSearch<int>(),
            describeProductSearch<int64_t>(),
            describeIndexSearch()};
    return all;
}

} // namespace faiss_bits::dropin
