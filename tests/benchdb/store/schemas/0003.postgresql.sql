CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.configurations (
    id integer NOT NULL,
    pattern character varying(500) NOT NULL,
    api character varying(20) NOT NULL,
    operation character varying(20) NOT NULL,
    file_per_process boolean NOT NULL,
    collective boolean NOT NULL,
    random_offsets integer NOT NULL,
    transfer_size bigint NOT NULL,
    block_size bigint NOT NULL,
    segments bigint NOT NULL,
    tasks integer,
    nodes integer,
    odirect boolean NOT NULL,
    fsync boolean NOT NULL,
    reorder_tasks boolean NOT NULL,
    intra_test_barriers boolean NOT NULL
);
CREATE SEQUENCE public.configurations_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.configurations_id_seq OWNED BY public.configurations.id;
CREATE TABLE public.imports (
    id integer NOT NULL,
    system_id integer NOT NULL,
    sha256 character varying(64) NOT NULL,
    file character varying(1000) NOT NULL,
    format character varying(40) NOT NULL,
    imported_at character varying(40) NOT NULL
);
CREATE SEQUENCE public.imports_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.imports_id_seq OWNED BY public.imports.id;
CREATE TABLE public.measurements (
    id integer NOT NULL,
    system_id integer NOT NULL,
    configuration_id integer NOT NULL,
    import_id integer NOT NULL,
    io_nodes integer NOT NULL,
    repetition integer NOT NULL,
    bandwidth_mib_s double precision NOT NULL,
    bytes bigint,
    time_s double precision,
    started character varying(40),
    engine character varying(40) NOT NULL,
    engine_version character varying(40),
    command character varying(4000),
    used boolean NOT NULL,
    note character varying(1000),
    campaign character varying(200)
);
CREATE SEQUENCE public.measurements_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.measurements_id_seq OWNED BY public.measurements.id;
CREATE TABLE public.models (
    id integer NOT NULL,
    system_id integer NOT NULL,
    engine character varying(40) NOT NULL,
    state character varying(64) NOT NULL,
    fitted_at character varying(40) NOT NULL,
    document text NOT NULL
);
CREATE SEQUENCE public.models_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.models_id_seq OWNED BY public.models.id;
CREATE TABLE public.systems (
    id integer NOT NULL,
    name character varying(200) NOT NULL,
    revision character varying(32)
);
CREATE SEQUENCE public.systems_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.systems_id_seq OWNED BY public.systems.id;
ALTER TABLE ONLY public.configurations ALTER COLUMN id SET DEFAULT nextval('public.configurations_id_seq'::regclass);
ALTER TABLE ONLY public.imports ALTER COLUMN id SET DEFAULT nextval('public.imports_id_seq'::regclass);
ALTER TABLE ONLY public.measurements ALTER COLUMN id SET DEFAULT nextval('public.measurements_id_seq'::regclass);
ALTER TABLE ONLY public.models ALTER COLUMN id SET DEFAULT nextval('public.models_id_seq'::regclass);
ALTER TABLE ONLY public.systems ALTER COLUMN id SET DEFAULT nextval('public.systems_id_seq'::regclass);
INSERT INTO public.alembic_version VALUES ('0003');
INSERT INTO public.configurations VALUES (1, 'ior -a POSIX -w --posix.odirect -b 96m -t 512k tasks=96 nodes=8', 'POSIX', 'write', false, false, 0, 524288, 100663296, 1, 96, 8, true, false, false, false);
INSERT INTO public.configurations VALUES (2, 'ior -a POSIX -r -b 16m -t 1m tasks=16 nodes=1', 'POSIX', 'read', false, false, 0, 1048576, 16777216, 1, 16, 1, false, false, false, false);
INSERT INTO public.configurations VALUES (3, 'ior -a POSIX -w -b 16m -t 1m tasks=16 nodes=1', 'POSIX', 'write', false, false, 0, 1048576, 16777216, 1, 16, 1, false, false, false, false);
INSERT INTO public.configurations VALUES (4, 'ior -a MPIIO -w -c -e -b 128k -t 128k -s 16 tasks=16 nodes=8', 'MPIIO', 'write', false, true, 0, 131072, 131072, 16, 16, 8, false, true, false, false);
INSERT INTO public.configurations VALUES (5, 'ior -a POSIX -r -F -b 4m -t 1m tasks=16 nodes=8', 'POSIX', 'read', true, false, 0, 1048576, 4194304, 1, 16, 8, false, false, false, false);
INSERT INTO public.configurations VALUES (6, 'ior -a POSIX -r -b 4m -t 1m tasks=16 nodes=8', 'POSIX', 'read', false, false, 0, 1048576, 4194304, 1, 16, 8, false, false, false, false);
INSERT INTO public.configurations VALUES (7, 'ior -a POSIX -r -b 8k -t 8k -s 64 tasks=16 nodes=8', 'POSIX', 'read', false, false, 0, 8192, 8192, 64, 16, 8, false, false, false, false);
INSERT INTO public.configurations VALUES (8, 'ior -a POSIX -w -F -e -b 1m -t 64k tasks=16 nodes=8', 'POSIX', 'write', true, false, 0, 65536, 1048576, 1, 16, 8, false, true, false, false);
INSERT INTO public.configurations VALUES (9, 'ior -a POSIX -w -F -e -b 24m -t 24m tasks=16 nodes=8', 'POSIX', 'write', true, false, 0, 25165824, 25165824, 1, 16, 8, false, true, false, false);
INSERT INTO public.configurations VALUES (10, 'ior -a POSIX -w -F -e -b 30m -t 3m tasks=16 nodes=8', 'POSIX', 'write', true, false, 0, 3145728, 31457280, 1, 16, 8, false, true, false, false);
INSERT INTO public.configurations VALUES (11, 'ior -a POSIX -w -F -e -b 3600k -t 400k tasks=16 nodes=8', 'POSIX', 'write', true, false, 0, 409600, 3686400, 1, 16, 8, false, true, false, false);
INSERT INTO public.configurations VALUES (12, 'ior -a POSIX -w -F -e -b 4m -t 1m tasks=16 nodes=8', 'POSIX', 'write', true, false, 0, 1048576, 4194304, 1, 16, 8, false, true, false, false);
INSERT INTO public.configurations VALUES (13, 'ior -a POSIX -w -e -b 128k -t 128k -s 16 tasks=16 nodes=8', 'POSIX', 'write', false, false, 0, 131072, 131072, 16, 16, 8, false, true, false, false);
INSERT INTO public.configurations VALUES (14, 'ior -a POSIX -w -e -b 4m -t 1m tasks=16 nodes=8', 'POSIX', 'write', false, false, 0, 1048576, 4194304, 1, 16, 8, false, true, false, false);
INSERT INTO public.configurations VALUES (15, 'ior -a POSIX -w -e -b 64k -t 64k -s 32 tasks=16 nodes=8', 'POSIX', 'write', false, false, 0, 65536, 65536, 32, 16, 8, false, true, false, false);
INSERT INTO public.configurations VALUES (16, 'ior -a POSIX -w -e -b 8k -t 8k -s 64 tasks=16 nodes=8', 'POSIX', 'write', false, false, 0, 8192, 8192, 64, 16, 8, false, true, false, false);
INSERT INTO public.configurations VALUES (17, 'ior -a POSIX -w -z -e -b 1m -t 32k tasks=16 nodes=8', 'POSIX', 'write', false, false, 1, 32768, 1048576, 1, 16, 8, false, true, false, false);
INSERT INTO public.configurations VALUES (18, 'ior -a POSIX -w -b 1m -t 256k tasks=16 nodes=8', 'POSIX', 'write', false, false, 0, 262144, 1048576, 1, 16, 8, false, false, false, false);
INSERT INTO public.imports VALUES (1, 1, '8ecac86785a3c96b5da4b2c452e77f3d67876b26ed3c8b5e4ccea514ad210e75', 'größer.csv', 'forge-csv', '2026-11-21T16:39:35+00:00');
INSERT INTO public.imports VALUES (2, 2, '4007a86486b31936eeddb91602fc3a5500de172f0eb2ac9e2a85be274a405f6e', 'wr-shared.json', 'ior', '2026-11-21T16:39:35+00:00');
INSERT INTO public.imports VALUES (3, 3, 'eaaa2a5336d3377b82d8ca685a1fedf185a37d7e87bc044305f7ca2fedd12f0f', 'benchmarks.csv', 'ioncast-csv', '2026-11-21T16:39:35+00:00');
INSERT INTO public.imports VALUES (4, 3, '6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b', 'runs/1/output', 'fio', '2026-11-21T16:39:35+00:00');
INSERT INTO public.measurements VALUES (1, 1, 1, 1, 0, 0, 66.609756, 4295491584, 61.5, NULL, 'forge', NULL, NULL, true, NULL, NULL);
INSERT INTO public.measurements VALUES (2, 1, 1, 1, 0, 1, 630.2, 4295491584, 6.5, NULL, 'forge', NULL, NULL, false, 'population B', NULL);
INSERT INTO public.measurements VALUES (3, 1, 1, 1, 2, 0, 130.2, 4295491584, 31.5, NULL, 'forge', NULL, NULL, true, NULL, NULL);
INSERT INTO public.measurements VALUES (4, 2, 2, 2, 4, 0, 9784.4161, 268435456, 0.0262, '2026-11-21T03:01:33', 'ior', '4.0.0', 'ior -a POSIX -w -r -b 16m -t 1m -o data/wr-shared/f -O summaryFormat=JSON -O summaryFile=ior_json/wr-shared.json', true, NULL, NULL);
INSERT INTO public.measurements VALUES (5, 2, 3, 2, 4, 0, 662.5639, 268435456, 0.3864, '2026-11-21T03:01:33', 'ior', '4.0.0', 'ior -a POSIX -w -r -b 16m -t 1m -o data/wr-shared/f -O summaryFormat=JSON -O summaryFile=ior_json/wr-shared.json', true, NULL, NULL);
INSERT INTO public.measurements VALUES (6, 3, 4, 3, 2, 0, 20.1344, 33554432, 1.5893, '2026-11-21T04:17:36Z', 'ior', NULL, 'ior -a MPIIO -c -w -b 128k -t 128k -s 16 -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (7, 3, 4, 3, 8, 0, 4.9343, 33554432, 6.4852, '2026-11-21T04:17:13Z', 'ior', NULL, 'ior -a MPIIO -c -w -b 128k -t 128k -s 16 -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (8, 3, 5, 3, 1, 0, 51.6074, 67108864, 1.2401, '2026-11-21T04:15:41Z', 'ior', NULL, 'ior -a POSIX -r -k -F -b 4m -t 1m', true, NULL, NULL);
INSERT INTO public.measurements VALUES (9, 3, 6, 3, 0, 0, 46.4421, 67108864, 1.3781, '2026-11-21T04:16:52Z', 'ior', NULL, 'ior -a POSIX -r -k -b 4m -t 1m', true, NULL, NULL);
INSERT INTO public.measurements VALUES (10, 3, 6, 3, 1, 0, 44.7799, 67108864, 1.4292, '2026-11-21T04:17:32Z', 'ior', NULL, 'ior -a POSIX -r -k -b 4m -t 1m', true, NULL, NULL);
INSERT INTO public.measurements VALUES (11, 3, 6, 3, 8, 0, 56.1104, 67108864, 1.1406, '2026-11-21T04:16:54Z', 'ior', NULL, 'ior -a POSIX -r -k -b 4m -t 1m', true, NULL, NULL);
INSERT INTO public.measurements VALUES (12, 3, 7, 3, 4, 0, 14.6492, 8388608, 0.5461, '2026-11-21T04:15:43Z', 'ior', NULL, 'ior -a POSIX -r -k -b 8k -t 8k -s 64', true, NULL, NULL);
INSERT INTO public.measurements VALUES (13, 3, 8, 3, 2, 0, 48.0315, 16777216, 0.3331, '2026-11-21T04:16:46Z', 'ior', NULL, 'ior -a POSIX -w -F -b 1m -t 64k -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (14, 3, 8, 3, 4, 0, 41.9479, 16777216, 0.3814, '2026-11-21T04:14:48Z', 'ior', NULL, 'ior -a POSIX -w -F -b 1m -t 64k -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (15, 3, 8, 3, 8, 0, 50.1907, 16777216, 0.3188, '2026-11-21T04:17:58Z', 'ior', NULL, 'ior -a POSIX -w -F -b 1m -t 64k -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (16, 3, 9, 3, 4, 0, 53.7091, 402653184, 7.1496, '2026-11-21T04:16:39Z', 'ior', NULL, 'ior -a POSIX -w -F -b 24m -t 24m -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (17, 3, 10, 3, 2, 0, 50.8324, 503316480, 9.4428, '2026-11-21T04:17:04Z', 'ior', NULL, 'ior -a POSIX -w -F -b 30m -t 3m -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (18, 3, 10, 3, 8, 0, 77.9713, 503316480, 6.1561, '2026-11-21T04:15:59Z', 'ior', NULL, 'ior -a POSIX -w -F -b 30m -t 3m -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (19, 3, 11, 3, 2, 0, 48.1736, 58982400, 1.1677, '2026-11-21T04:16:26Z', 'ior', NULL, 'ior -a POSIX -w -F -b 3600k -t 400k -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (20, 3, 11, 3, 4, 0, 80.6682, 58982400, 0.6973, '2026-11-21T04:16:42Z', 'ior', NULL, 'ior -a POSIX -w -F -b 3600k -t 400k -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (21, 3, 11, 3, 8, 0, 79.9235, 58982400, 0.7038, '2026-11-21T04:15:48Z', 'ior', NULL, 'ior -a POSIX -w -F -b 3600k -t 400k -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (22, 3, 12, 3, 0, 0, 43.2144, 67108864, 1.481, '2026-11-21T04:14:51Z', 'ior', NULL, 'ior -a POSIX -w -F -b 4m -t 1m -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (23, 3, 12, 3, 1, 0, 26.687, 67108864, 2.3982, '2026-11-21T04:15:52Z', 'ior', NULL, 'ior -a POSIX -w -F -b 4m -t 1m -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (24, 3, 12, 3, 8, 0, 60.6028, 67108864, 1.0561, '2026-11-21T04:17:38Z', 'ior', NULL, 'ior -a POSIX -w -F -b 4m -t 1m -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (25, 3, 13, 3, 0, 0, 24.9832, 33554432, 1.2809, '2026-11-21T04:16:45Z', 'ior', NULL, 'ior -a POSIX -w -b 128k -t 128k -s 16 -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (26, 3, 13, 3, 8, 0, 28.8617, 33554432, 1.1087, '2026-11-21T04:16:41Z', 'ior', NULL, 'ior -a POSIX -w -b 128k -t 128k -s 16 -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (27, 3, 14, 3, 0, 0, 34.0472, 67108864, 1.8797, '2026-11-21T04:15:39Z', 'ior', NULL, 'ior -a POSIX -w -b 4m -t 1m -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (28, 3, 14, 3, 1, 0, 26.2921, 67108864, 2.4342, '2026-11-21T04:15:34Z', 'ior', NULL, 'ior -a POSIX -w -b 4m -t 1m -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (29, 3, 14, 3, 2, 0, 25.9238, 67108864, 2.4688, '2026-11-21T04:16:29Z', 'ior', NULL, 'ior -a POSIX -w -b 4m -t 1m -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (30, 3, 15, 3, 1, 0, 26.3182, 33554432, 1.2159, '2026-11-21T04:16:48Z', 'ior', NULL, 'ior -a POSIX -w -b 64k -t 64k -s 32 -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (31, 3, 16, 3, 0, 0, 2.653, 8388608, 3.0155, '2026-11-21T04:17:42Z', 'ior', NULL, 'ior -a POSIX -w -b 8k -t 8k -s 64 -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (32, 3, 16, 3, 1, 0, 6.8544, 8388608, 1.1671, '2026-11-21T04:15:21Z', 'ior', NULL, 'ior -a POSIX -w -b 8k -t 8k -s 64 -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (33, 3, 16, 3, 2, 0, 4.0603, 8388608, 1.9703, '2026-11-21T04:15:37Z', 'ior', NULL, 'ior -a POSIX -w -b 8k -t 8k -s 64 -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (34, 3, 16, 3, 8, 0, 2.5409, 8388608, 3.1484, '2026-11-21T04:15:47Z', 'ior', NULL, 'ior -a POSIX -w -b 8k -t 8k -s 64 -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (35, 3, 17, 3, 1, 0, 24.0414, 16777216, 0.6655, '2026-11-21T04:16:31Z', 'ior', NULL, 'ior -a POSIX -w -z -b 1m -t 32k -e', true, NULL, NULL);
INSERT INTO public.measurements VALUES (36, 3, 18, 4, 0, 0, 10, NULL, NULL, '2026-11-21T05:00:00+00:00', 'fio', 'fio-3.33', NULL, true, NULL, 'nightly');
INSERT INTO public.measurements VALUES (37, 3, 18, 4, 0, 1, 11, NULL, NULL, NULL, 'fio', NULL, NULL, true, 'slow, "odd"', 'nightly');
INSERT INTO public.measurements VALUES (38, 3, 18, 4, 0, 0, 0.3333333333333333, NULL, NULL, NULL, 'ior', NULL, NULL, true, NULL, 'nightly');
INSERT INTO public.models VALUES (1, 3, 'ior', 'a6b97433a1f6a00b534405f41d95f1f1ad19906f13918d901c72143e736d0317', '2026-11-21T19:34:07+00:00', '{"version": 2, "features": ["request size", "bytes per process", "file per process", "1D-strided", "random", "collective", "MPI-IO", "read", "fsync", "I/O nodes", "processes per I/O node", "direct access"], "usual": [4.0, 1.0, 18.643856189774723, 21.813781191217036], "parameters": {"centre": [17.86085342166089, 21.28516410534159, 0.41935483870967744, 0.25806451612903225, 0.03225806451612903, 0.06451612903225806, 0.06451612903225806, 0.16129032258064516, 0.8064516129032258, 1.2258064516129032, 2.774193548387097, 0.1935483870967742], "scale": [2.916632398018046, 1.5846581832399342, 0.49345350131543086, 0.43756967633066246, 0.17668469596940845, 0.2456701001891583, 0.2456701001891583, 0.3677985242255284, 0.3950789907714804, 1.236792871785859, 1.2367928717858592, 0.39507899077148034], "offset": 3.1518112045220215, "spread": 1.2251914629215976, "trend": [0.04171271243864413, 0.04284966384434898, 0.02479926991737438, 0.03642173104529472, 0.020197367716153262, 0.030382630148602558, 0.030382309356699073, 0.0248781658708027, 0.24360043337434795, 0.020375963886669103, 0.020376151873172408, 0.023845266357537295], "weights": [0.08928947318756938, 0.08928946570180445, 0.08928955701746905], "lengths": [[1.6724516353187533, 3.0982508272205527, 4.885719060005018, 3.1459740411778605, 2.7301148986352843, 2.6042743820739096, 2.6042696310459728, 1.451056437626728, 3.495215198613564, 5.125018896505485, 5.125013511829244, 5.557868696268293], [2.6965246316156692, 2.683975065850583, 2.9226089192172875, 2.883196892736543, 2.723866865480089, 2.7090632707310354, 2.709067077858931, 2.676598645831388, 2.6716641678420086, 3.463843502617318, 3.4638476047490596, 3.2623227350890915], [2.6965236608414327, 2.6839783891149445, 2.9226044894953347, 2.8831948459597556, 2.723869084194138, 2.709065509441212, 2.709064594692269, 2.676597853905268, 2.6716613749255878, 3.4638595572542417, 3.4638555178334327, 3.262316998503021], [2.6965102114011152, 2.6839866112364277, 2.922612072611653, 2.8831899610411384, 2.7238683360784393, 2.7090651735536553, 2.7090624135749004, 2.676598084774491, 2.6716517743366968, 3.463844819532064, 3.4638474302495053, 3.2622972170293814]], "noise": [-4.650718371442518, -0.010992194213199843, -0.013466731990265133, -0.0178499924098718, 0.006028164795368864, 0.005111409577306531, 0.016066129665456907, 0.016061473450836652, 0.009737383456154353, -0.018099544563196627, -0.0032114050357962497, 0.003215521095706912, 0.017070443214888344], "residual": 0.0008576734898142838}, "widening": {"processes": 0.12, "processes per node": 0.12, "request size": 0.23203580993974632, "bytes per process": 0.5220805723644292}, "tails": [0.012533469508069278, 0.037608287661255936, 0.06270677794321383, 0.08784483789587182, 0.11303854064456521, 0.13830420796140463, 0.16365848623314108, 0.18911842627279238, 0.2147015680017444, 0.24042603114230793, 0.26631061320409494, 0.2923748962268042, 0.31863936396437514, 0.34512553147047226, 0.3718560893850747, 0.39885506564233686, 0.42614800784127826, 0.4537621901698796, 0.48172684958473033, 0.5100734569685947, 0.5388360302784502, 0.5680514983389827, 0.5977601260424784, 0.6280060144375696, 0.6588376927361879, 0.690308823933034, 0.7224790519280627, 0.7554150263604693, 0.7891916526582219, 0.8238936303385571, 0.8596173642419114, 0.8964733640019159, 0.9345892910734798, 0.974113877059309, 1.015222033217028, 1.058121617684777, 1.1030625561995975, 1.1503493803760079, 1.200358858030859, 1.2535654384704509, 1.310579112168129, 1.3722038089987263, 1.439531470938456, 1.514101887619284, 1.5981931399228182, 1.695397710272137, 1.8119106729525984, 1.9599639845400536, 2.17009037758456, 2.5758293035489], "known_factor": 1.0, "new_factor": 0.587072399820847, "scores": {"cell_error": 2.9203062773246096, "regret": 0.12226612498242077, "patterns": 15}, "measurements": 31, "configurations": 15}');
INSERT INTO public.models VALUES (2, 2, 'ior', '36bb8f294bcd3c8d2e7e2e9a8c81243a0c421b5064e59bf1988b768ac3bc0370', '2026-11-21T19:34:07+00:00', '{"version": 2, "features": ["read"], "usual": [4.0, 4.0, 20.0, 24.0], "parameters": {"centre": [0.5], "scale": [0.5], "offset": 7.842331605560068, "spread": 1.3462145995207764, "trend": [0.03657201236457875], "weights": [0.2989015019621452, 0.29890301542964043, 0.29890083400387796], "lengths": [[2.8144336442302813], [1.9274410879650978], [1.9274400193103152], [1.927455931409778]], "noise": [-3.9469122571342434, 1.5197020253750476e-07], "residual": 0.0009141776892176254}, "widening": {"processes": 0.12, "processes per node": 0.12, "request size": 0.12, "bytes per process": 0.12}, "tails": [0.012533469508069278, 0.037608287661255936, 0.06270677794321383, 0.08784483789587182, 0.11303854064456521, 0.13830420796140463, 0.16365848623314108, 0.18911842627279238, 0.2147015680017444, 0.24042603114230793, 0.26631061320409494, 0.2923748962268042, 0.31863936396437514, 0.34512553147047226, 0.3718560893850747, 0.39885506564233686, 0.42614800784127826, 0.4537621901698796, 0.48172684958473033, 0.5100734569685947, 0.5388360302784502, 0.5680514983389827, 0.5977601260424784, 0.6280060144375696, 0.6588376927361879, 0.690308823933034, 0.7224790519280627, 0.7554150263604693, 0.7891916526582219, 0.8238936303385571, 0.8596173642419114, 0.8964733640019159, 0.9345892910734798, 0.974113877059309, 1.015222033217028, 1.058121617684777, 1.1030625561995975, 1.1503493803760079, 1.200358858030859, 1.2535654384704509, 1.310579112168129, 1.3722038089987263, 1.439531470938456, 1.514101887619284, 1.5981931399228182, 1.695397710272137, 1.8119106729525984, 1.9599639845400536, 2.17009037758456, 2.5758293035489], "known_factor": 1.0, "new_factor": 1.0, "scores": null, "measurements": 2, "configurations": 2}');
INSERT INTO public.systems VALUES (1, 'MareNostrum 4', 'f4b921efe3c94ebcba5531152f9c7d8f');
INSERT INTO public.systems VALUES (2, 'local', 'fb4f6531d6f14a789d6c597ac33cd456');
INSERT INTO public.systems VALUES (3, 'testbed', '8124456a09fe4d95b85ac1051b54a1e9');
SELECT pg_catalog.setval('public.configurations_id_seq', 18, true);
SELECT pg_catalog.setval('public.imports_id_seq', 4, true);
SELECT pg_catalog.setval('public.measurements_id_seq', 38, true);
SELECT pg_catalog.setval('public.models_id_seq', 2, true);
SELECT pg_catalog.setval('public.systems_id_seq', 3, true);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.configurations
    ADD CONSTRAINT pk_configurations PRIMARY KEY (id);
ALTER TABLE ONLY public.imports
    ADD CONSTRAINT pk_imports PRIMARY KEY (id);
ALTER TABLE ONLY public.measurements
    ADD CONSTRAINT pk_measurements PRIMARY KEY (id);
ALTER TABLE ONLY public.models
    ADD CONSTRAINT pk_models PRIMARY KEY (id);
ALTER TABLE ONLY public.systems
    ADD CONSTRAINT pk_systems PRIMARY KEY (id);
ALTER TABLE ONLY public.configurations
    ADD CONSTRAINT uq_configurations_pattern UNIQUE (pattern);
ALTER TABLE ONLY public.imports
    ADD CONSTRAINT uq_imports_system_id_sha256 UNIQUE (system_id, sha256);
ALTER TABLE ONLY public.measurements
    ADD CONSTRAINT uq_measurements_repetition UNIQUE (system_id, configuration_id, io_nodes, engine, repetition);
ALTER TABLE ONLY public.models
    ADD CONSTRAINT uq_models_system_id_engine UNIQUE (system_id, engine);
ALTER TABLE ONLY public.systems
    ADD CONSTRAINT uq_systems_name UNIQUE (name);
CREATE INDEX ix_imports_system_id_id ON public.imports USING btree (system_id, id);
CREATE INDEX ix_measurements_import_id ON public.measurements USING btree (import_id);
ALTER TABLE ONLY public.imports
    ADD CONSTRAINT fk_imports_system_id FOREIGN KEY (system_id) REFERENCES public.systems(id);
ALTER TABLE ONLY public.measurements
    ADD CONSTRAINT fk_measurements_configuration_id FOREIGN KEY (configuration_id) REFERENCES public.configurations(id);
ALTER TABLE ONLY public.measurements
    ADD CONSTRAINT fk_measurements_import_id FOREIGN KEY (import_id) REFERENCES public.imports(id);
ALTER TABLE ONLY public.measurements
    ADD CONSTRAINT fk_measurements_system_id FOREIGN KEY (system_id) REFERENCES public.systems(id);
ALTER TABLE ONLY public.models
    ADD CONSTRAINT fk_models_system_id FOREIGN KEY (system_id) REFERENCES public.systems(id);
