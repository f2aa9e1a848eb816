# The flags of the house and prong_library(); used by CMakeLists.txt of the top and of each folder.

file(STRINGS "${PROJECT_SOURCE_DIR}/src/LAYERS" PRONG_LAYERS REGEX "^[a-z]")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/LAYERS")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Other levels would change neither results nor sizes for the better: hot loops ask for -O3 below.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(PRONG_X86 ON)
else()
  set(PRONG_X86 OFF)
endif()

# The flags of every target of ours. Eager and compiled code agree bit for bit only if no compiler
# contracts a*b+c, so contraction is off everywhere; errno and traps of math functions are not used.
add_library(prong_flags INTERFACE)
target_include_directories(prong_flags INTERFACE "${PROJECT_SOURCE_DIR}/src"
                                                 "${PROJECT_SOURCE_DIR}/include")
target_compile_options(prong_flags INTERFACE -ffp-contract=off -fno-math-errno -fno-trapping-math
                                             -ffunction-sections -fdata-sections -Wall -Wextra
                                             -Wno-restrict)  # false alarms of GCC 12
target_link_options(prong_flags INTERFACE -Wl,--gc-sections)
if(PRONG_SANITIZE)
  target_compile_options(prong_flags INTERFACE -fsanitize=${PRONG_SANITIZE} -g1
                                               -fno-omit-frame-pointer)
  target_link_options(prong_flags INTERFACE -fsanitize=${PRONG_SANITIZE})
  if(PRONG_SANITIZE MATCHES "undefined")
    # vptr needs RTTI, which LLVM's headers are compiled without; any finding ends the test.
    target_compile_options(prong_flags INTERFACE -fno-sanitize=vptr -fno-sanitize-recover=all)
  endif()
endif()

# What ordinary files add: the machine level that all supported x86 machines have.
add_library(prong_baseline INTERFACE)
target_link_libraries(prong_baseline INTERFACE prong_flags)
if(PRONG_X86)
  target_compile_options(prong_baseline INTERFACE -march=x86-64-v3)
endif()

# prong_simd_objects(<out> <level> <options> <files>): an object library of <files> for one machine
# level. Everything in them lives in namespace prong::PRONG_ISA, so levels stand side by side and
# the program chooses at run time.
function(prong_simd_objects name isa options)
  add_library(${name} OBJECT ${ARGN})
  target_link_libraries(${name} PRIVATE prong_flags)
  target_compile_options(${name} PRIVATE -O3 ${options})
  target_compile_definitions(${name} PRIVATE PRONG_ISA=${isa})
endfunction()

# prong_library(<folder>): target prong_<folder> from src/<folder>/**/*.cpp. It links to every
# folder before it in src/LAYERS, and to nothing after it. Subfolders with a CMakeLists.txt of
# their own are left out. Files named *_simd.cpp are compiled once a machine level.
function(prong_library folder)
  set(dir "${PROJECT_SOURCE_DIR}/src/${folder}")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${dir}/*.cpp" "${dir}/*.c")
  file(GLOB_RECURSE nested CONFIGURE_DEPENDS "${dir}/*/CMakeLists.txt")
  foreach(list_file IN LISTS nested)
    get_filename_component(sub "${list_file}" DIRECTORY)
    list(FILTER sources EXCLUDE REGEX "^${sub}/")
  endforeach()
  set(simd ${sources})
  list(FILTER simd INCLUDE REGEX "_simd\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "_simd\\.cpp$")

  set(below)
  foreach(layer IN LISTS PRONG_LAYERS)
    if(layer STREQUAL folder)
      break()
    endif()
    if(TARGET prong_${layer})
      list(APPEND below prong_${layer})
    endif()
  endforeach()

  set(target prong_${folder})
  if(NOT sources AND NOT simd)
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE prong_baseline ${below})
    return()
  endif()
  if(simd AND PRONG_X86)
    prong_simd_objects(${target}_v3 v3 "-march=x86-64-v3" ${simd})
    prong_simd_objects(${target}_v4 v4 "-march=x86-64-v4;-mprefer-vector-width=512" ${simd})
    list(APPEND sources $<TARGET_OBJECTS:${target}_v3> $<TARGET_OBJECTS:${target}_v4>)
  elseif(simd)
    prong_simd_objects(${target}_generic generic "" ${simd})
    list(APPEND sources $<TARGET_OBJECTS:${target}_generic>)
  endif()
  add_library(${target} STATIC ${sources})
  # Given when there are SIMD objects only: CMake cannot tell the language of objects.
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${target} PUBLIC prong_baseline ${below})
endfunction()

# prong_link_private(<folder> <libraries>): links a third party for the folder's own files only.
function(prong_link_private folder)
  get_target_property(kind prong_${folder} TYPE)
  if(NOT kind STREQUAL "INTERFACE_LIBRARY")
    target_link_libraries(prong_${folder} PRIVATE ${ARGN})
  endif()
endfunction()
