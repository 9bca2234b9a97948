#include "benchs/rivals/SelectMethod.h"

namespace faiss_bits::bench {

SelectMethods makeRivals(const Options& options) {
    SelectMethods rivals;
    addFaissRivals(rivals);
#ifdef FAISS_BITS_BENCH_RAFT
    addRaftRivals(rivals);
#endif
    addCubSort(rivals);
#ifdef FAISS_BITS_BENCH_CCCL
    addCubTopK(rivals);
#endif
    std::vector<std::string> names;
    for (const auto& rival : rivals) {
        names.push_back(rival->name());
    }
    options.requireRivals(names);
    std::erase_if(rivals, [&](const auto& rival) {
        return !options.wants(rival->name());
    });
    return rivals;
}

} // namespace faiss_bits::bench
