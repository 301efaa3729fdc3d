# cmake --install makes `find_package(assay)` work; it offers assay::reference.
