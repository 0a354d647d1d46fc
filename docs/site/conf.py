# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The site that scripts/docs builds: sphinx-build -c docs/site . build/docs/html, in the repository's root, which is the source
folder, so that links from pages to README, examples and headers are the same here and on a code-hosting site."""

import pathlib
import re
import sys

here = pathlib.Path(__file__).parent
root = here.parents[1]
sys.path[:0] = [str(here), str(root / "python")]


project = "adasum"
version = ".".join(re.findall(r"define ADASUM_VERSION_M?\w+ (\d+)", (root / "include/adasum/version.hpp").read_text()))
html_title = f"adasum {version}"

extensions = ["myst_parser", "breathe", "sphinx_external_toc", "sphinx_copybutton", "sphinx_design",
              "sphinx.ext.autodoc", "sphinx.ext.napoleon", "source_pages", "pictures",
              "python_signatures"]
include_patterns = ["docs/**.md", "*.md", "examples/README.md", "examples/studies/results/*.md",
                    "tests/emulated_cuda/README.md"]
exclude_patterns = ["build*"]
external_toc_path = "docs/site/toc.yml"

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
highlight_language = "none"

breathe_projects = {one: str(root / "build/docs/doxygen" / one / "xml") for one in ("adasum", "c")}
breathe_default_project = "adasum"
breathe_default_members = ("members",)
breathe_show_include = False
breathe_domain_by_extension = {"h": "c"}
cpp_maximum_signature_line_length = 90
toc_object_entries_show_parents = "hide"
# The package is read where nothing is built and neither numpy, PyTorch nor MPI need be there.
autodoc_mock_imports = ["numpy", "torch", "mpi4py", "adasum._library", "adasum._torch"]
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 90

source_headers = sorted(str(one.relative_to(root)) for folder in ("include", "src/torch/include")
                        for one in root.glob(f"{folder}/adasum/**/*.hpp"))

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False


if tags.has("spelling"):  # scripts/docs spelling
    extensions.append("sphinxcontrib.spelling")
    spelling_lang = "en_GB"
    spelling_warning = True
    spelling_word_list_filename = "docs/site/words.txt"
    spelling_filters = ["spelling.Formulas"]
    spelling_exclude_patterns = ["examples/studies/results/word2vec*"]  # its table is of words from Shakespeare
