/// A program of FAISS's that is linked with the drop-in library and calls
/// nothing of it.

#include <cstdio>

#include <faiss/IndexFlat.h>

int main() {
    const faiss::IndexFlatL2 index(2);
    std::printf("d = %d\n", int(index.d));
    return index.d == 2 ? 0 : 1;
}
