"""The references of technology: chips, energy, yield and cost."""

from __future__ import annotations

from .references import add as _add
from .references import arxiv as _arxiv

SAKURAI = _add(
    "sakurai1990",
    "article",
    "Alpha-Power Law MOSFET Model and its Applications to CMOS Inverter Delay and Other Formulas",
    "Sakurai, Takayasu and Newton, A. Richard",
    1990,
    journal="IEEE Journal of Solid-State Circuits 25(2)",
)
CARDANO = _add(
    "cardano1545",
    "book",
    "Artis Magnae, Sive de Regulis Algebraicis Liber Unus",
    "Cardano, Girolamo",
    1545,
    publisher="Petreius, Nuremberg",
)
RENT = _add(
    "keckler2011",
    "article",
    "GPUs and the Future of Parallel Computing",
    "Keckler, Stephen W. and Dally, William J. and Khailany, Brucek and Garland, Michael and Glasco, David",
    2011,
    journal="IEEE Micro 31(5)",
)
HOROWITZ = _add(
    "horowitz2014",
    "inproceedings",
    "Computing's Energy Problem (and what we can do about it)",
    "Horowitz, Mark",
    2014,
    booktitle="IEEE International Solid-State Circuits Conference",
)
FINE_GRAINED = _add(
    "oconnor2017",
    "inproceedings",
    "Fine-Grained DRAM: Energy-Efficient DRAM for Extreme Bandwidth Systems",
    "O'Connor, Mike and others",
    2017,
    booktitle="IEEE/ACM International Symposium on Microarchitecture",
    doi="10.1145/3123939.3124545",
)
ENERGY_ROOFLINE = _add(
    "choi2013",
    "inproceedings",
    "A Roofline Model of Energy",
    "Choi, Jee Whan and Bedard, Daniel and Fowler, Robert and Vuduc, Richard",
    2013,
    booktitle="IEEE International Parallel and Distributed Processing Symposium",
)
PUE = _add(
    "iso30134",
    "misc",
    "ISO/IEC 30134-2:2016: Data centres, key performance indicators, power usage effectiveness (PUE)",
    "ISO/IEC",
    2016,
    howpublished="https://www.iso.org/standard/63451.html",
)
DE_VRIES = _add(
    "devries2005",
    "article",
    "Investigation of Gross Die Per Wafer Formulas",
    "de Vries, Dirk K.",
    2005,
    journal="IEEE Transactions on Semiconductor Manufacturing 18(1)",
)
MURPHY = _add(
    "murphy1964",
    "article",
    "Cost-Size Optima of Monolithic Integrated Circuits",
    "Murphy, Bernard T.",
    1964,
    journal="Proceedings of the IEEE 52(12)",
)
STAPPER = _add(
    "stapper1983",
    "article",
    "Integrated Circuit Yield Statistics",
    "Stapper, Charles H. and Armstrong, Frederick M. and Saji, Kiyotaka",
    1983,
    journal="Proceedings of the IEEE 71(4)",
)
ACTUARY = _arxiv(
    "feng2022",
    "2203.12268",
    "Chiplet Actuary: A Quantitative Cost Model and Multi-Chiplet Architecture Exploration",
    "Feng, Yinxiao and Ma, Kaisheng",
    2022,
)
HENNESSY = _add(
    "hennessy2017",
    "book",
    "Computer Architecture: A Quantitative Approach",
    "Hennessy, John L. and Patterson, David A.",
    2017,
    publisher="Morgan Kaufmann",
    edition="6th",
)
BARROSO = _add(
    "barroso2018",
    "book",
    "The Datacenter as a Computer: Designing Warehouse-Scale Machines",
    "Barroso, Luiz Andre and Holzle, Urs and Ranganathan, Parthasarathy",
    2018,
    publisher="Morgan and Claypool",
    edition="3rd",
)
PATTERSON = _arxiv(
    "patterson2021",
    "2104.10350",
    "Carbon Emissions and Large Neural Network Training",
    "Patterson, David and others",
    2021,
)
