/// A program that uses the fake FAISS and has never heard of us.
///
/// usage: program [k]   prints who answered each of FAISS's functions

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "fake/FakeFaiss.h"

int main(int argc, char** argv) {
    const int k = argc > 1 ? std::atoi(argv[1]) : 2;
    const char* const names[] = {
            "runBlockSelect",
            "runBlockSelectPair",
            "runL2SelectMin",
            "runL2Distance",
            "runIPDistance",
            "runIVFInterleavedScan",
            "runIVFFlatScan",
            "runPQScanMultiPassNoPrecomputed",
            "runPQPrecomputedCodes_",
            "GpuIndex::search"};
    for (int i = 0; i < kFakeFunctions; ++i) {
        try {
            const float answer = fakeSearch(FakeFunction(i), k);
            std::printf(
                    "%s: %s\n",
                    names[i],
                    answer == kFakeAnswer ? "FAISS" : "nobody");
        } catch (const std::exception& error) {
            std::printf("%s: exception: %s\n", names[i], error.what());
        }
    }
    return 0;
}
